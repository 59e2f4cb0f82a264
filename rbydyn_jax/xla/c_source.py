"""A program of scalars as a function in C99, which needs nothing but the mathematics library.

A straight line of constants: `const double x7 = x3 * x5 + q[2];`, and loops. What is used once stands where it is used,
as long as lines stay short. Many operations become several functions, which hand on what they share in an array:
compilers take more than proportional time for long functions.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .scalars import Loop, NotScalarError, Part, Scalar, ScalarProgram, in_parts

_INTEGERS = {f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_TYPES = {"float64": "double", "float32": "float", "bool": "bool", **_INTEGERS}
_INFIX = {"add": ("+", 1), "sub": ("-", 1), "mul": ("*", 2), "div": ("/", 2)}
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_LOGIC, _BITS = {"and": "&&", "or": "||", "xor": "!="}, {"and": "&", "or": "|", "xor": "^"}
_SHIFTS = {"shift_left": "<<", "shift_right_arithmetic": ">>", "shift_right_logical": ">>"}
_ALIKE = (
    "sqrt cbrt sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh erf erfc exp exp2 expm1 log log1p "
    "log2 pow floor ceil"
)
_FUNCTIONS = {
    **{name: name for name in _ALIKE.split()},
    **{"abs": "fabs", "round": "rint", "max": "larger", "min": "smaller", "rem": "fmod"},
}
_CHOICES = {"max": "{0} > {1} ? {0} : {1}", "min": "{0} < {1} ? {0} : {1}", "abs": "{0} < 0 ? -{0} : {0}"}
_BEYOND_THEIR_TYPE = frozenset("add sub mul div neg not abs shift_left".split())  # where C computes with `int` instead
_BYTES_OF_INT = 4
_WIDTH = 120
_LONGEST = 48  # characters of an expression within another
_ATOM, _UNARY, _LOWEST = 4, 3, 0

_WORDS = """
    auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool true false
    and catch class delete explicit export friend mutable namespace new not operator or private protected public
    template this throw try typename using virtual xor bitand bitor compl or_eq and_eq xor_eq not_eq wchar_t nullptr
    constexpr decltype noexcept alignas alignof static_assert thread_local asm typeof linux unix i386 main
    float_t double_t isfinite isnan isinf isnormal fpclassify signbit isgreater isgreaterequal isless islessequal
    islessgreater isunordered INFINITY NAN math_errhandling
"""  # of C, C++ and GNU C, and macros and types of math.h
_RESERVED = frozenset(
    _WORDS.split() + [name + suffix for name in (*_FUNCTIONS.values(), "bits", "from_bits") for suffix in ("", "f")]
)
_MACROS = r"u?int\w*_t|U?INT\w*_(MAX|MIN|C)|(PTRDIFF|SIZE|SIG_ATOMIC|WCHAR|WINT)_(MAX|MIN)|(FP|M)_\w+|HUGE\w*|MATH_\w+"
_UNDERSCORES = r"__\w*|_[A-Z]\w*"
_OWN = r"[xsc]\d+|(work|div|rem)_\w+"
_HELPERS_OF_TYPES = r"(div|rem)_u?int\d+|to_u?int\d+f?"
_MATH = """
    canonicalize copysign drem exp10 fdim finite fma fmax fmaxmag fmin fminmag frexp fromfp gamma getpayload hypot ilogb
    j0 j1 jn ldexp lgamma lgamma_r llogb llrint llround log10 log2 logb lrint lround modf nan nearbyint nextafter
    nextdown nexttoward nextup pow10 remainder remquo round roundeven scalb scalbln scalbn setpayload significand
    signgam sincos tgamma totalorder trunc ufromfp y0 y1 yn
"""
_MATH_OF_OTHERS = "gamma_r isinf isnan signbit"  # of which C has none, but gcc has for each type
_MATH_OF_COMPLEX = """
    cabs cacos cacosh carg casin casinh catan catanh ccos ccosh cexp cimag clog clog10 conj cpow cproj creal csin csinh
    csqrt ctan ctanh
"""
_MATH_OF_SIZES = "ceil copysign fabs floor fma fmax fmin nan nearbyint rint round roundeven sqrt trunc"
_MATH_OF_DECIMALS = "fabs finite isinf isnan nan signbit"
_LIBRARY = """
    _exit abort abs aligned_alloc alloca bcmp bcopy bzero calloc dcgettext dgettext execl execle execlp execv execve
    execvp exit feclearexcept fegetenv fegetexceptflag fegetround feholdexcept feraiseexcept fesetenv fesetexceptflag
    fesetround fetestexcept feupdateenv ffs ffsimax ffsl ffsll fork fprintf fprintf_unlocked fputc fputc_unlocked fputs
    fputs_unlocked free fscanf fwrite fwrite_unlocked gammaf_r gammal_r gettext imaxabs index isalnum isalpha isascii
    isblank iscntrl isdigit isgraph islower isprint ispunct isspace isupper iswalnum iswalpha iswblank iswcntrl iswdigit
    iswgraph iswlower iswprint iswpunct iswspace iswupper iswxdigit isxdigit labs lgammaf_r lgammal_r llabs malloc
    memchr memcmp memcpy memmove mempcpy memset posix_memalign printf printf_unlocked putc putc_unlocked putchar
    putchar_unlocked puts puts_unlocked realloc rindex scanf snprintf sprintf sscanf stpcpy stpncpy strcasecmp strcat
    strchr strcmp strcpy strcspn strdup strfmon strftime strlen strncasecmp strncat strncmp strncpy strndup strnlen
    strpbrk strrchr strspn strstr toascii tolower toupper towlower towupper vfprintf vfscanf vprintf vscanf vsnprintf
    vsprintf vsscanf
"""
_OF_C = (*_MATH.split(), *_MATH_OF_OTHERS.split(), *_MATH_OF_COMPLEX.split(), *_FUNCTIONS.values())
# What math.h declares, or gcc knows without a header: no function may have these names, but an argument may.
_DECLARED = frozenset(
    [name + suffix for name in _OF_C for suffix in ("", "f", "l")]
    + [f"{name}f{size}" for name in _MATH_OF_SIZES.split() for size in ("16", "32", "32x", "64", "64x", "128")]
    + [f"{name}d{size}" for name in _MATH_OF_DECIMALS.split() for size in ("32", "64", "128")]
    + _LIBRARY.split()
)


def is_reserved(name: str) -> bool:
    """Whether no argument may have this name: a word of C or C++, a macro of a header, or one that the source has."""
    return name in _RESERVED or re.fullmatch(rf"{_MACROS}|{_OWN}|{_HELPERS_OF_TYPES}|{_UNDERSCORES}", name) is not None


def is_declared(name: str) -> bool:
    """Whether no function may have this name: a word of C or C++, what a header, the compiler or the source has."""
    patterns = rf"{_MACROS}|{_HELPERS_OF_TYPES}|{_UNDERSCORES}"
    return name in _RESERVED or name in _DECLARED or re.fullmatch(patterns, name) is not None


# Not a number if either is, unlike fmax and fmin.
_HELPERS = {
    "bits": "static u{2} bits{1}({0} x) {{ union {{ {0} x; u{2} bits; }} both = {{ x }}; return both.bits; }}",
    "from_bits": "static {0} from_bits{1}(u{2} x) {{ union {{ u{2} bits; {0} x; }} both = {{ x }}; return both.x; }}",
    "larger": "static {0} larger{1}({0} a, {0} b) {{ return a > b || isnan(a) ? a : b; }}",
    "smaller": "static {0} smaller{1}({0} a, {0} b) {{ return a < b || isnan(a) ? a : b; }}",
}


class Array(NamedTuple):
    """An argument or a result."""

    name: str
    size: int
    dtype: Any

    def declared(self, is_const: bool, is_restricted: bool = False) -> str:
        """As a parameter; the size tells the reader, since it is a pointer for the compiler."""
        kind = ("const " if is_const else "") + c_type(self.dtype)
        restrict = "restrict " if is_restricted else ""
        return f"{kind} {self.name}[{restrict}{self.size}]" if self.size else f"{kind} *{restrict}{self.name}"


Place = tuple[Array, int]


class _Text(NamedTuple):
    """An expression, and how tightly its outermost operation binds."""

    text: str
    binds: int


def c_type(dtype: Any) -> str:
    """The type of C.

    Raises:
        NotScalarError: There is none.
    """
    if (name := np.dtype(dtype).name) not in _TYPES:
        raise NotScalarError(name, "is not a type of C")
    return _TYPES[name]


def c_literal(value: Any) -> str:
    """A number with all its digits."""
    kind = np.dtype(value.dtype).name
    if kind == "bool":
        return "true" if value else "false"
    if kind == "int64" and int(value) == np.iinfo(np.int64).min:
        return "(-9223372036854775807LL - 1)"
    if kind not in ("float32", "float64"):
        long = "LL" if kind.endswith("64") and abs(int(value)) >= 2**31 else ""
        return f"{int(value)}{'U' if kind.startswith('u') else ''}{long}"
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    digits = str(value)
    return (digits if set(digits) & set(".e") else f"{digits}.0") + ("f" if kind == "float32" else "")


def c_signature(name: str, parameters: Sequence[str]) -> str:
    """A function's name with its parameters, each on a line of its own if there is no room for all."""
    short, separator = f"{name}({', '.join(parameters) or 'void'})", ",\n    "
    return short if len(short) <= _WIDTH else f"{name}(\n    {separator.join(parameters)})"


def c_function(
    name: str, program: ScalarProgram, arguments: Sequence[Array], results: Sequence[Array], most: int
) -> str:
    """The text of a function, with the functions that it calls before it.

    Args:
        name: Of the function.
        program: What it computes, of the numbers of the arguments.
        arguments: Arrays that are read.
        results: Arrays that are written.
        most: Operations in one function.

    Raises:
        NotScalarError: An operation or a type is not written in C.
    """
    parts = in_parts(program, most)
    places, work = _places_between(parts)
    places |= zip(program.inputs, ((x, k) for x in arguments for k in range(x.size)), strict=True)
    targets: dict[Scalar, list[Place]] = {}
    copies: list[tuple[Any, Place]] = []
    for x, place in zip(program.results, ((y, k) for y in results for k in range(y.size)), strict=True):
        if isinstance(x, Scalar) and x.operation != "input":
            targets.setdefault(x, []).append(place)
        else:
            copies.append((x, place))
    writer = _Writer(places, targets)
    written, every = {x.name for x in (*work, *results)}, [*arguments, *work, *results]

    copied = [f"    {_at(place)} = {writer.value(x, {}).text};" for x, place in copies]
    used = {place[0].name for _, place in copies} | {places[x][0].name for x, _ in copies if isinstance(x, Scalar)}

    def function(own: str, given: Sequence[Array], body: Sequence[str]) -> str:
        parameters = [x.declared(x.name not in written, is_restricted=True) for x in given]
        return "\n".join([c_signature(own, parameters), "{", *body, "}"])

    body: list[str] = []
    functions: list[str] = []
    for k, part in enumerate(parts, start=1):
        lines, touched = writer.lines(part)
        used |= touched
        if len(parts) == 1:
            body = lines
        else:
            given = [x for x in every if x.name in touched]
            functions.append(function(f"static void {name}_{k}", given, lines))
            body.append(f"    {name}_{k}({', '.join(x.name for x in given)});")
    declared = [f"    {c_type(x.dtype)} {x.name}[{x.size}];" for x in work]
    unused = [f"    (void){x.name};" for x in (*arguments, *results) if x.name not in used]
    functions.append(function(f"void {name}", [*arguments, *results], [*declared, *unused, *body, *copied]))
    return "\n\n".join([*writer.helpers, *functions]) + "\n"


def _at(place: Place) -> str:
    return f"{place[0].name}[{place[1]}]"


def _places_between(parts: Sequence[Part]) -> tuple[dict[Scalar, Place], list[Array]]:
    """Where what later parts read is kept, and the arrays, one for each type. A place that is free is used again."""
    last = {x: k for k, part in enumerate(parts) for x in part.reads if x.operation != "input"}
    sizes, free, kept = Counter[str](), dict[str, list[int]](), dict[Scalar, tuple[str, int]]()
    types: dict[str, np.dtype] = {}
    for k, part in enumerate(parts):
        for x in part.gives:
            if x in last:
                kind = f"work_{c_type(x.dtype).removesuffix('_t')}"
                types[kind] = x.dtype
                if free.get(kind):
                    kept[x] = kind, free[kind].pop()
                else:
                    kept[x] = kind, sizes[kind]
                    sizes[kind] += 1
        for x in part.reads:
            if last.get(x) == k:
                kind, at = kept[x]
                free.setdefault(kind, []).append(at)
    arrays = {kind: Array(kind, size, types[kind]) for kind, size in sizes.items()}
    return {x: (arrays[kind], at) for x, (kind, at) in kept.items()}, list(arrays.values())


class _Writer:
    """Writes the operations of parts."""

    def __init__(self, places: Mapping[Scalar, Place], targets: Mapping[Scalar, Sequence[Place]]) -> None:
        self.places, self.targets = places, targets
        self.numbers: Counter[str] = Counter()
        self.helpers: dict[str, None] = {}

    def lines(self, part: Part) -> tuple[list[str], set[str]]:
        """What a part does, and the names of the arrays that it reads or writes."""
        touched = {self.places[x][0].name for x in part.reads}
        return self.written(part.operations, {}, touched, ()), touched

    def written(
        self, operations: Sequence[Scalar], texts: dict[Scalar, _Text], touched: set[str], ends: Sequence[Any]
    ) -> list[str]:
        """The lines of operations, of which the `ends` are used behind them."""
        lines: list[str] = []
        within = Counter(y for x in operations for y in x.operands if isinstance(y, Scalar))
        within.update(y for y in ends if isinstance(y, Scalar))
        # What a loop needs is computed before it, and not in each turn.
        within.update(y for x in operations if isinstance(x, Loop) for y in x.needed)
        for x in operations:
            if isinstance(x, Loop):
                lines += self.loop(x, texts)
                continue
            text = texts[x] if x.operation == "left" else self.operation(x, texts)
            targets = [*self.targets.get(x, ()), *([self.places[x]] if x in self.places else [])]
            is_short = len(text.text) <= _LONGEST and text.binds > _LOWEST
            if x.operation != "left" and (within[x] + len(targets) != 1 or not (targets or is_short)):
                kind = {"sin": "s", "cos": "c"}.get(x.operation, "x")
                name = self.name(kind)
                lines.append(f"    const {c_type(x.dtype)} {name} = {text.text};")
                text = _Text(name, _ATOM)
            texts[x] = text
            for place in targets:
                lines.append(f"    {_at(place)} = {text.text};")
                touched.add(place[0].name)
        return lines

    def loop(self, x: Loop, texts: dict[Scalar, _Text]) -> list[str]:
        """A loop, whose numbers are variables."""
        names = [self.name("x") for _ in x.start]
        lines = [
            f"    {c_type(now.dtype)} {name} = {self.value(y, texts).text};"
            for name, now, y in zip(names, x.carried, x.start, strict=True)
        ]
        inside = dict(texts)
        inside |= {y: _Text(name, _ATOM) for name, y in zip(names, x.carried, strict=True)}
        touched = set[str]()  # nothing is written within
        later = [x.goes_on, *(y for z in x.body for y in z.operands), *x.after]
        turn = self.written(x.check, inside, touched, later)
        turn.append(f"    if (!{_within(self.value(x.goes_on, inside), _ATOM)}) break;")
        turn += self.written(x.body, inside, touched, x.after)
        new = [self.value(y, inside).text for y in x.after]
        after = [self.name("x") for _ in new]
        turn += [
            f"    const {c_type(y.dtype)} {name} = {text};" for y, name, text in zip(x.carried, after, new, strict=True)
        ]
        turn += [f"    {name} = {text};" for name, text in zip(names, after, strict=True)]
        read = {*later, *(y for z in x.check for y in z.operands)}
        turn += [f"    (void){name};" for name, y in zip(names, x.carried, strict=True) if y not in read]
        texts |= {y: _Text(name, _ATOM) for name, y in zip(names, x.left, strict=True)}
        return [*lines, "    for (;;) {", *(f"    {line}" for line in turn), "    }"]

    def name(self, kind: str) -> str:
        """A new name."""
        self.numbers[kind] += 1
        return f"{kind}{self.numbers[kind]}"

    def value(self, x: Any, texts: Mapping[Scalar, _Text]) -> _Text:
        """What stands for a number."""
        if not isinstance(x, Scalar):
            literal = c_literal(x)
            return _Text(literal, _UNARY if literal.startswith("-") else _ATOM)
        return texts[x] if x in texts else _Text(_at(self.places[x]), _ATOM)

    def operation(self, x: Scalar, texts: Mapping[Scalar, _Text]) -> _Text:
        """The expression of an operation, of its own type."""
        found = self.promoted(x, texts)
        dtype = np.dtype(x.dtype)
        if x.operation in _BEYOND_THEIR_TYPE and dtype.kind in "iu" and dtype.itemsize < _BYTES_OF_INT:
            return _Text(f"({c_type(x.dtype)}){_within(found, _ATOM)}", _UNARY)
        return found

    def promoted(self, x: Scalar, texts: Mapping[Scalar, _Text]) -> _Text:
        """The expression of an operation, which is an `int` where C does not compute in the type."""
        name, xs = x.operation, [self.value(y, texts) for y in x.operands]
        kind, given = np.dtype(x.dtype).kind, np.dtype(x.operands[0].dtype).kind
        if name in ("div", "rem") and kind in "iu":
            return self.divided(name, np.dtype(x.dtype), xs)
        if name in _INFIX:
            sign, binds = _INFIX[name]
            right = _within(xs[1], binds + 1)
            right = f"({right})" if right.startswith("-") and binds == _INFIX["sub"][1] else right
            return _Text(f"{_within(xs[0], binds)} {sign} {right}", binds)
        if name == "neg" or name == "not":
            sign = "-" if name == "neg" else "!" if kind == "b" else "~"
            return _Text(f"{sign}{_within(xs[0], _ATOM)}", _UNARY)
        if name == "convert":
            if kind == "b":
                return _Text(f"{_within(xs[0], 1)} != 0", _LOWEST)
            if kind in "iu" and given == "f":
                return self.whole(np.dtype(x.dtype), np.dtype(x.operands[0].dtype), xs[0])
            return _Text(f"({c_type(x.dtype)}){_within(xs[0], _ATOM)}", _UNARY)
        if name == "select":
            return _Text("{} ? {} : {}".format(*(_within(y, 1) for y in xs)), _LOWEST)
        if name in ("shift_right_arithmetic", "shift_right_logical") and name.endswith("logical") != (kind == "u"):
            raise NotScalarError(name, f"of {x.dtype} is not written in C")
        sign = _COMPARISONS.get(name) or _SHIFTS.get(name) or (_LOGIC if kind == "b" else _BITS).get(name)
        if sign:
            return _Text(f"{_within(xs[0], 1)} {sign} {_within(xs[1], 1)}", _LOWEST)
        if name == "is_finite":
            return _Text(f"isfinite({xs[0].text})", _ATOM)
        if name in _FUNCTIONS and given == "f":
            return self.called(_FUNCTIONS[name], x.dtype, xs)
        if name == "bits":
            found = self.called(name, x.operands[0].dtype, xs)
            return found if kind == "u" else _Text(f"({c_type(x.dtype)}){found.text}", _UNARY)
        if name == "from_bits":
            unsigned = (
                xs[0] if given == "u" else _Text(f"(u{c_type(x.operands[0].dtype)}){_within(xs[0], _ATOM)}", _UNARY)
            )
            return self.called(name, x.dtype, [unsigned])
        if name in _CHOICES:
            return _Text(_CHOICES[name].format(*(_within(y, _ATOM) for y in xs)), _LOWEST)
        raise NotScalarError(name, f"of {x.operands[0].dtype} is not written in C")

    def whole(self, dtype: np.dtype, given: np.dtype, x: _Text) -> _Text:
        """A number as an integer: the nearest one that there is, and 0 of NaN, where C defines none."""
        ends, of, kind = np.iinfo(dtype), c_type(given), c_type(dtype)
        own = f"to_{dtype.name}{'f' if given == np.float32 else ''}"
        least, most = (c_literal(dtype.type(end)) for end in (ends.min, ends.max))
        low, above = (c_literal(given.type(end)) for end in (ends.min, ends.max + 1))
        cases = f"if (x < {low}) return {least}; if (x >= {above}) return {most};"
        self.helpers[f"static {kind} {own}({of} x) {{ {cases} return isnan(x) ? 0 : ({kind})x; }}"] = None
        return _Text(f"{own}({x.text})", _ATOM)

    def divided(self, name: str, dtype: np.dtype, xs: Sequence[_Text]) -> _Text:
        """A quotient or a remainder of integers, by zero and of the least number by -1 too, where C defines none."""
        own, kind, sign = f"{name}_{dtype.name}", c_type(dtype), {"rem": "%", "div": "/"}[name]
        cases = [f"b == 0 ? {'a' if name == 'rem' else f'({kind})-1'}"]
        if dtype.kind == "i":
            cases.append(f"b == -1 ? {'0' if name == 'rem' else f'({kind})(0 - (u{kind})a)'}")
        line = " : ".join([*cases, f"({kind})(a {sign} b)"])
        self.helpers[f"static {kind} {own}({kind} a, {kind} b) {{ return {line}; }}"] = None
        return _Text(f"{own}({xs[0].text}, {xs[1].text})", _ATOM)

    def called(self, name: str, dtype: Any, xs: Sequence[_Text]) -> _Text:
        """A function of floating-point numbers of a type."""
        kind, suffix, integer = ("float", "f", "int32_t") if dtype == np.float32 else ("double", "", "int64_t")
        if name in _HELPERS:
            self.helpers[_HELPERS[name].format(kind, suffix, integer)] = None
        return _Text(f"{name}{suffix}({', '.join(y.text for y in xs)})", _ATOM)


def _within(x: _Text, binds: int) -> str:
    return x.text if x.binds >= binds else f"({x.text})"
