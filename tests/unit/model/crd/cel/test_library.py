from __future__ import annotations

from datetime import timedelta

import pytest

from isthmus.model.crd.cel import CelError
from tests.unit.model.crd.cel.evaluate import evaluate


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("size('héé')", 3),
        ("'abc'.size() + [1].size() + {'a': 1}.size() + b'ab'.size()", 7),
        ("'abc'.startsWith('a') && 'abc'.endsWith('c') && 'abc'.contains('b')", True),
        ("'tacocat'.charAt(3)", "o"),
        ("'hello mellow'.indexOf('ello', 2)", 7),
        ("'hello mellow'.lastIndexOf('ello', 6)", 1),
        ("'hello'.indexOf('z')", -1),
        ("'TacoÇ'.lowerAscii() + 'tacoç'.upperAscii()", "tacoÇTACOç"),
        ("'he he he'.replace('he', 'we')", "we we we"),
        ("'he he he'.replace('he', 'we', 1)", "we he he"),
        ("'a b c'.split(' ')", ["a", "b", "c"]),
        ("'a b c'.split(' ', 2)", ["a", "b c"]),
        ("'a b'.split(' ', 0)", []),
        ("'abc'.split('')", ["a", "b", "c"]),
        ("'tacocat'.substring(4) + 'tacocat'.substring(0, 4)", "cattaco"),
        ("['a', 'b'].join() + ['a', 'b'].join('-')", "aba-b"),
        ("'  a '.trim() + 'ab'.reverse()", "aba"),
        ("'%s has %d, %.2f, %x, %b%%'.format(['a', 3, 1.5, 255, true])", "a has 3, 1.50, ff, 1%"),
        ("'%s'.format([[1, 'a', {'k': null}]])", "[1, a, {k: null}]"),
        ("strings.quote('a\"b')", '"a\\"b"'),
        ("'ab12cd3'.find('[0-9]+')", "12"),
        ("'ab12cd3'.findAll('[0-9]+')", ["12", "3"]),
        ("'ab12cd3'.findAll('[0-9]+', 1)", ["12"]),
        ("'aaaa'.matches('^(a+)+$') && matches('b', 'b')", True),
        ("[1, 2, 2].isSorted() && !['b', 'a'].isSorted()", True),
        ("[1, 2].sum() + [3, 1].min() + [3, 1].max()", 7),
        ("[1, 2, 1].indexOf(1) + [1, 2, 1].lastIndexOf(1)", 2),
        ("[3, 1].sort() + [1, 1].distinct() + [1, 2, 3].slice(1, 2)", [1, 3, 1, 2]),
        ("[[1], [2, 3]].flatten().reverse()", [3, 2, 1]),
        ("sets.contains([1, 2], [2]) && sets.equivalent([1, 1], [1])", True),
        ("sets.intersects([1], [2])", False),
    ],
)
def test_texts_and_lists(text: str, value: object) -> None:
    assert evaluate(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("int('12') + int(1.9) + int(2u)", 15),
        ("uint(3) == 3u && double('1.5') == 1.5", True),
        ("string(12) + string(1.0) + string(2.5) + string(true)", "1212.5true"),
        ("string(b'abc') + string(bytes('é'))", "abcé"),
        ("bool('true') && !bool('0')", True),
        ("string(duration('1h30m')) + string(duration('-500ms'))", "5400s-0.5s"),
        ("string(timestamp('2020-01-02T03:04:05.600Z'))", "2020-01-02T03:04:05.6Z"),
        ("timestamp(0) == timestamp('1970-01-01T00:00:00Z')", True),
        ("int(timestamp('1970-01-01T00:01:00Z'))", 60),
        ("timestamp('2020-01-01T00:00:00Z') - timestamp('2019-12-31T00:00:00Z')", timedelta(1)),
        ("timestamp('2020-01-01T00:00:00Z') + duration('24h') > timestamp('2020-01-01T23:00:00Z')",
         True),
        ("timestamp('2020-03-01T10:20:30Z').getFullYear()", 2020),
        ("timestamp('2020-03-01T10:20:30Z').getMonth()", 2),
        ("timestamp('2020-03-01T10:20:30Z').getDayOfYear()", 60),
        ("timestamp('2020-03-01T10:20:30Z').getDayOfWeek()", 0),
        ("timestamp('2020-03-01T10:20:30Z').getHours('+02:30')", 12),
        ("duration('90m').getHours() + duration('90m').getMinutes()", 91),
    ],
)  # fmt: skip
def test_conversions_and_times(text: str, value: object) -> None:
    assert evaluate(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "quantity('1Gi') == quantity('1024Mi')",
        "quantity('500m').isLessThan(quantity('1'))",
        "quantity('2').add(quantity('1')).compareTo(quantity('3')) == 0",
        "quantity('2k').asInteger() == 2000 && quantity('2k').isInteger()",
        "quantity('-1').sign() == -1 && quantity('1500m').asApproximateFloat() == 1.5",
        "isQuantity('1Gi') && !isQuantity('1 Gi')",
        "isIP('10.0.0.1') && isIP('::1') && !isIP('10.0.0.256') && !isIP('::ffff:1.2.3.4')",
        "ip('127.0.0.1').isLoopback() && ip('::1').family() == 6",
        "ip('169.254.1.1').isLinkLocalUnicast() && ip('8.8.8.8').isGlobalUnicast()",
        "ip('224.0.0.1').isLinkLocalMulticast() && ip('0.0.0.0').isUnspecified()",
        "ip.isCanonical('2001:db8::1') && !ip.isCanonical('2001:DB8::1')",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3') && !cidr('10.0.0.0/8').containsIP('11.0.0.1')",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')",
        "cidr('10.0.0.1/8').masked() == cidr('10.0.0.0/8')",
        "cidr('10.0.0.1/8').ip() == ip('10.0.0.1') && cidr('10.0.0.0/8').prefixLength() == 8",
        "isCIDR('fd00::/8') && !isCIDR('10.0.0.0/33')",
        "isURL('https://a.b/c?d=e') && isURL('/a') && !isURL('a b')",
        "url('https://u@a.b:80/c%20d?k=v&k=w').getHost() == 'a.b:80'",
        "url('https://a.b:80/c%20d').getHostname() == 'a.b'",
        "url('https://a.b:80/c%20d').getPort() == '80'",
        "url('https://a.b:80/c%20d').getEscapedPath() == '/c%20d'",
        "url('https://a.b/?k=v&k=w').getQuery()['k'] == ['v', 'w']",
        "url('https://a.b/').getScheme() == 'https'",
        "isSemver('1.2.3-a.1') && !isSemver('v1.2.3') && semver('1.2.3').minor() == 2",
        "semver('1.2.3-rc.2').isLessThan(semver('1.2.3-rc.10'))",
        "semver('1.2.3-rc.1').isLessThan(semver('1.2.3'))",
        "format.dns1123Label().validate('a-b') == optional.none()",
        "format.dns1123Label().validate('A_b').value().size() == 1",
        "format.named('labelValue').hasValue() && !format.named('nothing').hasValue()",
        "!format.named('uuid').value().validate('123e4567-e89b-12d3-a456-426614174000').hasValue()",
    ],
)
def test_kubernetes_own(text: str) -> None:
    assert evaluate(text) is True


@pytest.mark.parametrize(
    "text",
    [
        "int('1.5')",
        "int(1e30)",
        "uint(-1)",
        "double('1e')",
        "bool('yes')",
        "timestamp('yesterday')",
        "duration('1d')",
        "timestamp(0).getHours('Nowhere/Land')",
        "timestamp(0).getHours('../../etc/passwd')",
        "timestamp(0) + duration('9000000h') + duration('999999999999h')",
        "string(b'\\xff')",
        "'abc'.charAt(4)",
        "'abc'.substring(2, 1)",
        "[1, 'a'].isSorted()",
        "[].min()",
        "[9223372036854775807, 1].sum()",
        "[1].join()",
        "'%d'.format(['a'])",
        "'%s'.format([])",
        "'%q'.format([1])",
        "'a'.matches('(')",
        "'a'.matches('(?<=a)b')",
        "quantity('x')",
        "quantity('1.5').asInteger()",
        "ip('x')",
        "cidr('10.0.0.0')",
        "url('://')",
        "semver('1')",
    ],
)
def test_what_has_no_value_is_an_error(text: str) -> None:
    with pytest.raises(CelError):
        evaluate(text)


def test_texts_cannot_be_made_huge() -> None:
    long = "a" * 2000
    with pytest.raises(CelError, match="more than 1000000 characters"):
        evaluate("self.replace('a', self)", self=long)
    with pytest.raises(CelError, match="more than 1000000 characters"):
        evaluate("self.split('').join(self)", self=long)
