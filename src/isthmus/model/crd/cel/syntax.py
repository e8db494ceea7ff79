"""Reading CEL: text to a tree (cel-spec, "Syntax"), of bounded length and depth.

What is not CEL, or not served here, is refused with its place and name.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from isthmus.model.crd.cel.tree import (
    At,
    Bind,
    Both,
    Call,
    Choice,
    Expr,
    Fold,
    ListOf,
    Literal,
    MapOf,
    Name,
    OptMap,
    Present,
    Select,
    depth,
)
from isthmus.model.crd.cel.values import Uint

MAX_TEXT: Final = 16_384
"""Characters of one expression."""

MAX_DEPTH: Final = 40
"""Brackets, conditions and operators inside one another."""

MAX_TREE: Final = 80
"""Expressions inside one another, however they got there; readers of the tree rely on it."""

MAX_CHAIN: Final = 60
"""Selections, calls and sums in one row: the tree of `a.b.c` is as deep as it is long."""

RESERVED: Final = frozenset(
    (
        "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
        "loop", "package", "namespace", "return", "var", "void", "while",
    )
)  # fmt: skip


class SyntaxFault(ValueError):
    """It is no expression of CEL: where, and why."""


class Token(NamedTuple):
    """A word of the expression; `kind` is int, uint, float, text, bytes, name, or the sign."""

    kind: str
    text: str
    at: int


_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\r\n\f]+|//[^\n]*)
    |(?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<int>0[xX][0-9a-fA-F]+[uU]?|[0-9]+[uU]?)
    |(?P<text>[rR]?[bB]?[rR]?(?:\"{3}|'{3}|"|'))
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*|`[A-Za-z0-9_.\-/ ]+`)
    |(?P<sign>&&|\|\||[<>=!]=|[-+*/%<>!?:.,\[\](){}])""",
    re.VERBOSE | re.ASCII,
)

_ESCAPE: Final = re.compile(
    r"\\(?:([abfnrtv\\?\"'`])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})"
    r"|([0-3][0-7]{2})|(.|\n|$))"
)
_LETTERS: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def parse(text: str) -> Expr:
    """The tree of an expression; SyntaxFault."""
    if len(text) > MAX_TEXT:
        raise SyntaxFault(f"may not be longer than {MAX_TEXT} characters")
    found = _Parser(_tokens(text)).whole()
    if depth(found) > MAX_TREE:
        raise SyntaxFault(f"nested more than {MAX_TREE} deep")
    return found


# --------------------------------------------------------------------------------------- words


def _tokens(text: str) -> list[Token | _Constant]:
    found: list[Token | _Constant] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise SyntaxFault(f"position {at + 1}: unexpected {text[at]!r}")
        kind, word = match.lastgroup or "", match[0]
        if kind == "text":
            value, at = _quoted(text, at, word)
            found.append(_Constant(value, match.start()))
            continue
        if kind in ("int", "float"):
            found.append(_Constant(_number(kind, word, at), at))
        elif kind != "space":
            found.append(Token(word if kind == "sign" else kind, word, at))
        at = match.end()
    return found


class _Constant(NamedTuple):
    """A literal of the text, with its value."""

    value: object
    at: int
    kind: str = "constant"
    text: str = "a constant"


def _number(kind: str, word: str, at: int) -> object:
    if kind == "float":
        return float(word)
    unsigned = word[-1] in "uU"
    digits = word[:-1] if unsigned else word
    value = int(digits, 16) if digits[:2] in ("0x", "0X") else int(digits[:40])
    if unsigned:
        if value >= 2**64:
            raise SyntaxFault(f"position {at + 1}: invalid uint literal")
        return Uint(value)
    # One more than fits is only right behind a minus; the parser looks.
    if value > 2**63:
        raise SyntaxFault(f"position {at + 1}: invalid int literal")
    return value


def _quoted(text: str, at: int, opening: str) -> tuple[object, int]:
    """The value of a string or bytes literal that begins at `at`, and where it ends."""
    prefix = opening.rstrip("\"'").lower()
    if len(prefix) != len(set(prefix)):
        raise SyntaxFault(f"position {at + 1}: unexpected {prefix!r}")
    mark = opening[len(prefix) :]
    start = at + len(opening)
    end, raw = start, "r" in prefix
    while not text.startswith(mark, end):
        if end >= len(text) or (len(mark) == 1 and text[end] == "\n"):
            raise SyntaxFault(f"position {at + 1}: the string does not end")
        end += 2 if text[end] == "\\" and not raw else 1
    inner = text[start:end]
    if "b" in prefix:
        value: object = inner.encode() if raw else _octets(inner, at)
    else:
        value = inner if raw else _unescaped(inner, at)
    return value, end + len(mark)


def _unescaped(inner: str, at: int) -> str:
    def one(found: re.Match[str]) -> str:
        letter, pair, four, eight, octal, _ = found.groups()
        if letter is not None:
            return _LETTERS.get(letter, letter)
        code = int(octal, 8) if octal else int(pair or four or eight or "110000", 16)
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise SyntaxFault(f"position {at + 1}: invalid escape {found[0]!r}")
        return chr(code)

    return _ESCAPE.sub(one, inner)


def _octets(inner: str, at: int) -> bytes:
    """Escapes of bytes are octets; other characters their UTF-8."""
    parts: list[bytes] = []
    last = 0
    for found in _ESCAPE.finditer(inner):
        parts.append(inner[last : found.start()].encode())
        _, pair, _, _, octal, _ = found.groups()
        code = int(pair, 16) if pair else int(octal, 8) if octal else None
        said = bytes([code]) if code is not None else _unescaped(found[0], at).encode()
        parts.append(said)
        last = found.end()
    return b"".join((*parts, inner[last:].encode()))


# -------------------------------------------------------------------------------------- grammar

_BINARY: Final = {
    "==": 3, "!=": 3, "<": 3, "<=": 3, ">": 3, ">=": 3, "in": 3,
    "+": 4, "-": 4, "*": 5, "/": 5, "%": 5,
}  # fmt: skip
"""Operators that bind to the left; && is 2, || is 1, ?: is 0."""

_FOLDS: Final = {
    "all": (2, 3),
    "exists": (2, 3),
    "exists_one": (2, 3),
    "existsOne": (2, 3),
    "map": (2, 3),
    "filter": (2,),
    "transformList": (3, 4),
    "transformMap": (3, 4),
}
"""Macros over lists and maps, and how many arguments they take."""

_END: Final = Token("end", "the end", -1)


class _Parser:
    """Recursive descent over the words; every step down is counted."""

    def __init__(self, tokens: list[Token | _Constant]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0

    def whole(self) -> Expr:
        found = self._choice()
        if self._peek().kind != "end":
            raise self._unexpected()
        return found

    def _peek(self) -> Token | _Constant:
        return self._tokens[self._next] if self._next < len(self._tokens) else _END

    def _take(self, kind: str) -> bool:
        if self._peek().kind != kind:
            return False
        self._next += 1
        return True

    def _must(self, kind: str) -> Token | _Constant:
        found = self._peek()
        if found.kind != kind:
            raise self._unexpected(kind)
        self._next += 1
        return found

    def _unexpected(self, wanted: str = "") -> SyntaxFault:
        found = self._peek()
        where = f"position {found.at + 1}: " if found.at >= 0 else ""
        expected = f", expected {wanted}" if wanted else ""
        return SyntaxFault(f"{where}unexpected {found.text}{expected}")

    def _choice(self) -> Expr:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise SyntaxFault(f"nested more than {MAX_DEPTH} deep")
        condition = self._logic(any=True)
        if self._take("?"):
            yes = self._logic(any=True)
            self._must(":")
            condition = Choice(condition, yes, self._choice())
        self._depth -= 1
        return condition

    def _logic(self, *, any: bool) -> Expr:  # noqa: A002 - || or &&
        sign = "||" if any else "&&"
        parts = [self._part(any=any)]
        while self._take(sign):
            parts.append(self._part(any=any))
        return Both(tuple(parts), any) if len(parts) > 1 else parts[0]

    def _part(self, *, any: bool) -> Expr:  # noqa: A002
        return self._logic(any=False) if any else self._binary(3)

    def _binary(self, least: int) -> Expr:
        left = self._unary()
        count = 0
        while True:
            word = self._peek()
            sign = word.text if word.text == "in" else word.kind
            level = _BINARY.get(sign, 0)
            if level < least:
                return left
            count += 1
            if count > MAX_CHAIN:
                raise SyntaxFault(f"more than {MAX_CHAIN} operators in a row")
            self._next += 1
            left = Call(f"_{sign}_", (left, self._binary(level + 1)))

    def _unary(self) -> Expr:
        signs = 0
        sign = self._peek().kind
        if sign not in ("!", "-"):
            return self._member()
        while self._take(sign):
            signs += 1
        if self._peek().kind in ("!", "-"):
            raise self._unexpected()
        constant = self._peek()
        if sign == "-" and isinstance(constant, _Constant) and type(constant.value) in (int, float):
            return self._negative(constant, signs)
        of = self._member()
        return Call(f"{sign}_", (of,)) if signs % 2 else of

    def _negative(self, constant: _Constant, signs: int) -> Expr:
        if signs % 2 and isinstance(constant.value, int | float):
            self._tokens[self._next] = constant._replace(value=-constant.value)
        return self._member()

    def _member(self) -> Expr:
        found = self._primary()
        count = 0
        while True:
            count += 1
            if count > MAX_CHAIN:
                raise SyntaxFault(f"more than {MAX_CHAIN} selections in a row")
            if self._take("."):
                found = self._selection(found)
            elif self._take("["):
                optional = self._take("?")
                found = At(found, self._choice(), optional)
                self._must("]")
            elif self._peek().kind == "{" and isinstance(found, Name | Select):
                raise SyntaxFault("messages (Type{field: value}) are not supported")
            else:
                return found

    def _selection(self, of: Expr) -> Expr:
        optional = self._take("?")
        field = self._must("name").text
        if field.startswith("`"):
            return Select(of, field.strip("`"), optional)
        if optional or not self._take("("):
            return Select(of, field, optional)
        return _method(of, field, self._arguments())

    def _arguments(self) -> tuple[Expr, ...]:
        args: list[Expr] = []
        while not self._take(")"):
            args.append(self._choice())
            if not self._take(","):
                self._must(")")
                break
        return tuple(args)

    def _primary(self) -> Expr:
        word = self._peek()
        self._next += 1
        match word:
            case _Constant(value):
                if isinstance(value, int) and not isinstance(value, Uint) and value >= 2**63:
                    raise SyntaxFault(f"position {word.at + 1}: invalid int literal")
                return Literal(value)
            case Token("name", name, _):
                return self._named(name)
            case Token("(", _, _):
                found = self._choice()
                self._must(")")
                return found
            case Token("[", _, _):
                return self._list()
            case Token("{", _, _):
                return self._map()
            case Token(".", _, _):
                return self._named(self._must("name").text)
            case _:
                self._next -= 1
                raise self._unexpected()

    def _named(self, name: str) -> Expr:
        if name in ("true", "false", "null"):
            return Literal({"true": True, "false": False, "null": None}[name])
        if name in RESERVED or name == "in" or name.startswith("`"):
            self._next -= 1
            raise self._unexpected("an expression")
        if not self._take("("):
            return Name(name)
        args = self._arguments()
        if name != "has":
            return Call(name, args)
        if len(args) == 1 and isinstance(args[0], Select):
            return Present(args[0].of, args[0].field)
        raise SyntaxFault("has() takes one selection: has(a.b)")

    def _list(self) -> Expr:
        items: list[Expr] = []
        optional: list[bool] = []
        while not self._take("]"):
            optional.append(self._take("?"))
            items.append(self._choice())
            if not self._take(","):
                self._must("]")
                break
        return ListOf(tuple(items), tuple(optional))

    def _map(self) -> Expr:
        entries: list[tuple[Expr, Expr]] = []
        optional: list[bool] = []
        while not self._take("}"):
            optional.append(self._take("?"))
            key = self._choice()
            self._must(":")
            entries.append((key, self._choice()))
            if not self._take(","):
                self._must("}")
                break
        return MapOf(tuple(entries), tuple(optional))


def _method(of: Expr, name: str, args: tuple[Expr, ...]) -> Expr:
    """A call with a target: a macro, a function of a namespace (`ip.isCanonical`), or a method."""
    first = args[0] if args and isinstance(args[0], Name) else None
    if of == Name("cel") and name == "bind":
        if first is None or len(args) != 3:
            raise SyntaxFault("cel.bind() takes a name, its value, and an expression")
        return Bind(first.name, args[1], args[2])
    if name in ("optMap", "optFlatMap"):
        if first is None or len(args) != 2:
            raise SyntaxFault(f"{name}() takes a name and an expression")
        return OptMap(of, first.name, args[1], name == "optFlatMap")
    if len(args) in _FOLDS.get(name, ()):
        return _fold(of, name, args)
    return Call(name, (of, *args), method=True)


def _fold(of: Expr, name: str, args: tuple[Expr, ...]) -> Expr:
    """One name, or two where the third argument is not the filter of a `map`."""
    count = 1 if name in ("filter", "map") or len(args) == 2 else 2
    names = tuple(each.name for each in args[:count] if isinstance(each, Name))
    if len(names) != count or len(set(names)) != count:
        raise SyntaxFault(f"the argument of {name}() must be a simple name")
    kind = "existsOne" if name == "exists_one" else name
    return Fold(kind, of, names, args[count:])
