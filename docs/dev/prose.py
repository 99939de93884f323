#!/usr/bin/env python3
"""Find prose in this project that reads like a translation (see style.md beside this file).

Usage, from the project's root:
    docs/dev/prose.py                  # hits per 1,000 words, by habit and by folder
    docs/dev/prose.py --list PATH...   # every hit in these files or folders
    docs/dev/prose.py --names          # public names defined in three or more files

Reads the prose that git tracks: comments in .rs, .sql and .py files, messages in string literals
of src/, xtask/ and sql/, and the paragraphs of .md files. Skips code blocks and tables. About one
hit in seven is innocent, so use the list to find sentences to rewrite; do not write around the
patterns. Rates measured the same way: pgvector and redb below 1, well-known Rust crates 0.2 to 0.7.
"""
import collections
import re
import subprocess
import sys

HABITS = {
    "opener without a subject": (
        r"^\s*(?:///|//!)\s+(?:Of|To|From|Those|As|Behind|They|Them|There|Here|That|Which|Whose|By"
        r"|Or|And|But|What|Whoever|Whether)\b(?! (?:conver|ow))"
    ),
    "is no X": (
        r"(?<![Tt]here )\b(?:is|are|was|were|be) no "
        r"(?!such|longer|more|less|fewer|need|way|other|room|point)[a-z]"
    ),
    "of which, those of": r"\bof (?:which|whom)\b|\bthose (?:of|that|which|with)\b",
    "what ...": (
        r"(?:^|[,:;.(]) ?(?:(?:and|or|but|that|by|for|of|with) )?"
        r"[Ww]hat(?:ever)? (?!is (?:the|a)\b)[a-z]+"
        r"|\bwhat (?:comes|goes|stands|belongs|follows|came|has|have|can|must|may)\b"
    ),
    "comes, goes, tells, brings": (
        r"\b(?:comes?|came) (?!from\b)"
        r"(?:about|before|behind|after|once|twice|last|first|in|with|to|next|later|then|at)\b"
        r"|\b(?:goes|go|went) (?:with|neither|by|into|along)\b"
        r"|\btells? (?:which|what|how|whether|of|nothing|that|the)\b|\bbr(?:ings?|ought)\b"
    ),
    "says so, stands in": (
        r"\bsa(?:ys?|id) (?:so|which|what|how|whether|it|otherwise|where)\b"
        r"|\b(?:stands?|stood) (?:in|at|on|under|behind|among|for|next)\b"
    ),
    "nobody, whoever, somebody": r"\b(?:nobody|whoever|somebody|anybody)\b",
    "is to be done": r"\b(?:is|are) (?:not )?to be [a-z]+ed\b",
    "least X, so many X": (
        r"\b(?:least|greatest) (?:and|of|distance|key|number|value)\b"
        r"|\bso (?:many|much) [a-z]+\b(?! that)"
    ),
    "anew, thereby, beside": r"\b(?:anew|thereof|thereby|therein|beside)\b",
    "place (for index, offset, span)": (
        r"(?<!in )(?<!take )(?<!takes )\bplaces?\b(?!holder)"
    ),
}
COMMENT = {".rs": r"^\s*//", ".sql": r"^\s*--", ".py": r"^\s*#"}
MESSAGES = ("src/", "xtask/", "sql/")


def prose(path):
    """Yield (line number, text) of the prose of one file."""
    end = path[path.rfind("."):]
    fenced = False
    with open(path, encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            if end == ".md":
                if line.lstrip().startswith("```"):
                    fenced = not fenced
                elif not fenced and not line.startswith("|"):
                    yield number, line
            elif re.match(COMMENT[end], line):
                yield number, line
            elif path.startswith(MESSAGES):
                quote = "'" if end == ".sql" else '"'
                for text in re.findall(quote + r"([^'\"]{20,})" + quote, line):
                    if len(text.split()) > 3:
                        yield number, text


def tracked(paths):
    command = ["git", "ls-files", "--"] + list(paths)
    files = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
    skipped = ("sql/neardup--",)
    read = (".rs", ".sql", ".py", ".md")
    return [f for f in files if f.endswith(read) and not f.startswith(skipped)]


def rates():
    words, hits, habits = collections.Counter(), collections.Counter(), collections.Counter()
    for path in tracked([]):
        parts = path.split("/")
        is_package = parts[0] in ("crates", "src", "docs") and len(parts) > 2
        folder = "/".join(parts[:2]) if is_package else parts[0]
        for _, line in prose(path):
            words[folder] += len(line.split())
            found = [habit for habit, pattern in HABITS.items() if re.search(pattern, line)]
            hits[folder] += bool(found)
            habits.update(found)
    for habit, count in habits.most_common():
        print(f"{count:6}  {habit}")
    print()
    for folder in sorted(words, key=lambda f: -hits[f]):
        if words[folder] > 300:
            print_rate(hits[folder], words[folder], folder)
    print_rate(sum(hits.values()), sum(words.values()), "all")


def print_rate(hits, words, folder):
    print(f"{1000 * hits / words:6.1f}  {words:7} words  {folder}")


def names():
    found = collections.defaultdict(set)
    for path in tracked(["src", "crates", "xtask", "python"]):
        if path.endswith(".rs") and "/tests/" not in path:
            with open(path, encoding="utf-8") as lines:
                for line in lines:
                    item = r"pub(?:\([a-z]+\))? (?:struct|enum|trait|type) (\w+)"
                    match = re.match(item, line)
                    if match:
                        found[match[1]].add(path)
    for name, paths in sorted(found.items(), key=lambda item: -len(item[1])):
        if len(paths) >= 3:
            print(f"{len(paths)}  {name}: {' '.join(sorted(paths))}")


def main(arguments):
    if arguments[:1] == ["--names"]:
        names()
    elif arguments[:1] == ["--list"]:
        for path in tracked(arguments[1:]):
            for number, line in prose(path):
                habits = [h for h, pattern in HABITS.items() if re.search(pattern, line)]
                if habits:
                    print(f"{path}:{number}: {line.strip()}   [{'; '.join(habits)}]")
    else:
        rates()


if __name__ == "__main__":
    main(sys.argv[1:])
