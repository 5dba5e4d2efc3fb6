"""What the checks share: which files are ours, and C++ text without its comments and strings."""
import pathlib
import re
import sys

FOLDERS = ["tw", "tests", "bench", "examples", "tools", "python"]
CXX = {".h", ".cpp", ".def"}

# One alternative per kind of text that may hold braces, quotes or includes without meaning them.
_TOKEN = re.compile(
    r'R"(?P<tag>[^\s()\\]{0,16})\((?:.|\n)*?\)(?P=tag)"'
    r'|//(?:\\\n|[^\n])*|/\*(?:.|\n)*?\*/'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"
)


def files(root, suffixes, folders=FOLDERS):
    """Files below the folders with one of the suffixes ('' matches scripts that start with #!)."""
    found = []
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if not path.is_file() or "__pycache__" in path.parts:
                continue
            if path.suffix in suffixes and (path.suffix or is_script(path)):
                found.append(path)
    return found


def is_script(path):
    with open(path, "rb") as f:
        return f.read(2) == b"#!"


def blank(text, strings=True):
    """The C++ text with comments and raw strings (and with `strings`, all literals) made blank.

    Lines and columns stay where they were."""

    def replace(match):
        found = match[0]
        if found[0] in "\"'" and not strings:
            return found
        return re.sub(r"[^\n]", " ", found)

    return _TOKEN.sub(replace, text)


def comments(text):
    """(line number, text) of each comment of a C++ file, a block comment line by line."""
    for match in _TOKEN.finditer(text):
        if match[0].startswith(("//", "/*")):
            first = text.count("\n", 0, match.start()) + 1
            for i, line in enumerate(match[0].splitlines()):
                yield first + i, line.strip("/* \t")


class Memory:
    """Keys of files that passed a check, kept in a file so that they are not checked again."""

    def __init__(self, path):
        self.path = path
        self.keys = set(path.read_text().split()) if path.exists() else set()

    def keep(self, keys):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("\n".join(sorted(keys)))


def root_from_argv():
    return pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()


def finish(name, problems):
    """Prints the problems and leaves with 1, or says that all is well."""
    print("\n".join(problems) or f"{name}: ok")
    sys.exit(bool(problems))
