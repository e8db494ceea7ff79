// The little of the DOM that is needed more than once.

/** A new element. */
export function element(name, className = "", text = "") {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text) made.textContent = text;
  return made;
}

/** Set a text if it is another one: what does not change is not painted, and not spoken, again. */
export function put(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** A small square of a color. */
export function swatch(color) {
  const made = element("span", "swatch");
  made.style.setProperty("--fill", color);
  made.setAttribute("aria-hidden", "true");
  return made;
}
