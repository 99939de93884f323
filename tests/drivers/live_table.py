"""Runs the migrations of docs/live-table.md, up, down and up again, on a table with rows.

Usage: live_table.py SECTION DOCUMENT CONNINFO.
"""

import os
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import psycopg

from applications import code, url_of

TEXT = "The old swing bridge in the harbour stays closed until the end of May."
NEAR = TEXT.upper()

MODELS = '''
from django.db import models


class Article(models.Model):
    body = models.TextField()
'''

FIRST_REVISION = '''
import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade():
    op.create_table("articles", sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
                    sa.Column("body", sa.Text))


def downgrade():
    op.drop_table("articles")
'''


@contextmanager
def open_transaction(settings, statement):
    """Another session that holds its locks for three seconds, while the migration runs."""
    connection = psycopg.connect(**settings)
    connection.execute(statement)

    def end():
        time.sleep(3)
        connection.rollback()

    thread = threading.Thread(target=end)
    thread.start()
    yield
    thread.join()
    connection.close()


def with_django(files, settings):
    import django
    from django.conf import settings as django_settings
    from django.core.management import call_command
    from django.db import IntegrityError, transaction

    Path("news/migrations").mkdir(parents=True)
    Path("news/__init__.py").touch()
    Path("news/migrations/__init__.py").touch()
    Path("news/models.py").write_text(MODELS)
    django_settings.configure(
        INSTALLED_APPS=["django.contrib.postgres", "news"],
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        DATABASES={"default": {
            "ENGINE": "django.db.backends.postgresql", "NAME": settings["dbname"],
            "USER": settings["user"], "HOST": settings["host"], "PORT": settings["port"]}})
    django.setup()
    call_command("makemigrations", "news", verbosity=0)
    call_command("migrate", verbosity=0)
    from news.models import Article

    Article.objects.create(body=TEXT)
    Path("news/migrations/0002_neardup.py").write_text(files["migration.py"])
    with open_transaction(settings, "SELECT FROM news_article"):
        call_command("migrate", verbosity=0)
    call_command("migrate", "news", "0001", verbosity=0)
    call_command("migrate", verbosity=0)
    call_command("makemigrations", "--check", "--dry-run", verbosity=1)
    try:
        with transaction.atomic():
            Article.objects.create(body=NEAR)
    except IntegrityError:
        pass
    else:
        raise AssertionError("a near-duplicate was written")
    Article.objects.create(body="Rain is expected in the north from Friday evening.")
    assert Article.objects.count() == 2


def with_alembic(files, settings):
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import create_engine, text
    from sqlalchemy.exc import IntegrityError

    url = url_of(settings)
    config = Config("alembic.ini")
    config.set_main_option("sqlalchemy.url", url.replace("%", "%%"))
    command.init(config, "migrations")
    config.set_main_option("script_location", "migrations")
    Path("migrations/versions/0001_articles.py").write_text(FIRST_REVISION)
    command.upgrade(config, "head")
    insert = text("INSERT INTO articles (body) VALUES (:body)")
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(insert, {"body": TEXT})
    Path("migrations/versions/0002_neardup.py").write_text(files["revision.py"])
    with open_transaction(settings, "SELECT FROM articles"):
        command.upgrade(config, "head")
    command.downgrade(config, "0001")
    command.upgrade(config, "head")
    try:
        with engine.begin() as connection:
            connection.execute(insert, {"body": NEAR})
    except IntegrityError:
        pass
    else:
        raise AssertionError("a near-duplicate was written")


def main():
    section, document, conninfo = sys.argv[1:]
    settings = dict(part.split("=", 1) for part in conninfo.split())
    files, _ = code(Path(document).resolve(), section)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.path.insert(0, folder)
        {"Django": with_django, "Alembic": with_alembic}[section](files, settings)
        os.chdir("/")
    print(f"{section}: done")


main()
