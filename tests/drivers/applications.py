"""Runs a section of docs/applications.md as an application would.

Usage: applications.py SECTION DOCUMENT CONNINFO [pool]. Code under the heading that is marked with
a path becomes that file, or its continuation, the rest is one script from top to bottom. The frame
around it is what `alembic init` and `django-admin startproject` make; with `pool`, Django takes its
connections out of psycopg's pool.
"""

import os
import sys
import tempfile
from pathlib import Path


def code(document, heading):
    """The files of a section, and its script, on the lines that it has in the document.

    The document's title as the heading selects all sections.
    """
    files, script = {}, []
    whole = inside = fence = False
    for line in document.read_text().splitlines():
        kept = ""
        if fence:
            fence = line != "```"
            if fence and name:
                files[name].append(line)
            elif fence:
                kept = line
        elif line.startswith("# "):
            whole = line == f"# {heading}"
        elif line.startswith("## "):
            inside = whole or line == f"## {heading}"
        elif inside and line.startswith("```python"):
            fence, name = True, line.removeprefix("```python").strip()
            if name:
                files.setdefault(name, [])
        script.append(kept)
    assert files or any(script), f"no code under {heading}"
    return {name: "\n".join(lines) + "\n" for name, lines in files.items()}, "\n".join(script)


def url_of(settings):
    """The address of the database for SQLAlchemy."""
    return "postgresql+psycopg://{user}@/{dbname}?host={host}&port={port}".format(**settings)


def with_sqlalchemy(settings):
    from alembic import command
    from alembic.config import Config

    url = url_of(settings)
    os.environ["DATABASE_URL"] = url
    config = Config("alembic.ini")
    config.set_main_option("sqlalchemy.url", url.replace("%", "%%"))
    versions = Path("migrations/versions/0001_page.py")
    text = versions.read_text()
    versions.unlink()
    versions.parent.rmdir()
    versions.parent.parent.rmdir()
    command.init(config, "migrations")
    config.set_main_option("script_location", "migrations")
    versions.write_text(text)
    for revision in ("head", "base", "head"):
        move = command.downgrade if revision == "base" else command.upgrade
        move(config, revision)
    check_models(url)


def check_models(url):
    """The model and the migration are of one table."""
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext
    from sqlalchemy import create_engine

    import models

    with create_engine(url).connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        changes = compare_metadata(context, models.Base.metadata)
    tables = [change for change in changes if change[0] != "remove_table"]
    assert not tables, tables


def with_django(settings, pool=None, app="news"):
    import django
    from django.conf import settings as django_settings
    from django.core.management import call_command

    Path(app, "__init__.py").touch()
    Path(app, "migrations/__init__.py").touch()
    django_settings.configure(
        INSTALLED_APPS=["django.contrib.postgres", app],
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        DATABASES={"default": {
            "ENGINE": "django.db.backends.postgresql", "NAME": settings["dbname"],
            "USER": settings["user"], "HOST": settings["host"], "PORT": settings["port"],
            # The pool has one connection, so that each checkout gets the same one.
            "OPTIONS": {"pool": {"min_size": 1, "max_size": 1}} if pool else {}}})
    django.setup()
    if app != "news":  # The document has all migrations of this app.
        call_command("makemigrations", app, verbosity=0)
    call_command("migrate", verbosity=0)
    call_command("migrate", app, "zero", verbosity=0)
    call_command("migrate", verbosity=0)
    # The model and the migration agree.
    call_command("makemigrations", "--check", "--dry-run", verbosity=1)


def with_psycopg(settings):
    url = "postgresql://{user}@/{dbname}?host={host}&port={port}"
    os.environ["DATABASE_URL"] = url.format(**settings)


FRAMES = {"Django": with_django, "Retries": with_psycopg}


def main():
    section, document, conninfo, *options = sys.argv[1:]
    document = Path(document).resolve()
    settings = dict(part.split("=", 1) for part in conninfo.split())
    files, script = code(document, section)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.path.insert(0, folder)
        for name, text in files.items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text(text)
        FRAMES.get(section, with_sqlalchemy)(settings, *options)
        exec(compile(script, str(document), "exec"), {"__name__": "__main__"})
        os.chdir("/")
    print(f"{section}: done")


if __name__ == "__main__":
    main()
