"""The package neardup for Django: fields, functions, the index and the constraint.

Usage: wheel_django.py TEST CONNINFO. Each test is an application `news` in a folder of its own,
whose migrations are those that makemigrations writes.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

MODELS = '''
from django.db import models
from neardup.django import (
    Ball, Fingerprint128Field, Fingerprint256Field, FingerprintField, MinHash, MinHash64,
    MinHashSignatureField, NeardupConstraint, NeardupIndex, Simhash128)


class Page(models.Model):
    site = models.TextField(default="a")
    body = models.TextField()
    fp = models.GeneratedField(
        expression=MinHash64("body", shingle=2, accents="remove"),
        output_field=FingerprintField(), db_persist=True, null=True)
    sig = models.GeneratedField(
        expression=MinHash("body", hashes=64), output_field=MinHashSignatureField(),
        db_persist=True, null=True)
    wide = Fingerprint128Field(null=True, blank=True)
    pdq = Fingerprint256Field(null=True, blank=True)
    image = models.BigIntegerField(null=True, blank=True)

    class Meta:
        indexes = [
            NeardupIndex(fields=["fp"], name="page_fp", radius=4, fillfactor=80),
            NeardupIndex(fields=["sig"], name="page_sig", hashes=64),
            NeardupIndex(fields=["image"], name="page_image", opclasses=["bigint_hamming_ops"]),
            NeardupIndex(Simhash128("body", weight="log"), name="page_simhash"),
        ]
        constraints = [
            NeardupConstraint(
                name="page_one_copy", radius=3, condition=~models.Q(site="free"),
                expressions=[("site", "="), (Ball("fp", 6), "~=")]),
        ]
'''

ADMIN = '''
from django.contrib import admin
from news.models import Page

admin.site.register(Page)
'''

A, B, C = ("The library reopens on Monday after two years.",
           "The library reopens on Monday, after two years!",
           "Rain is expected all over the country.")


def application(conninfo):
    """Makes the application, and the tables by its migrations."""
    settings = dict(part.split("=", 1) for part in conninfo.split())
    os.environ["NEWS"] = repr(settings)
    Path("news/migrations").mkdir(parents=True)
    Path("news/__init__.py").touch()
    Path("news/migrations/__init__.py").touch()
    Path("news/models.py").write_text(MODELS)
    Path("news/admin.py").write_text(ADMIN)
    Path("news/urls.py").write_text(
        "from django.contrib import admin\n"
        "from django.urls import path\n"
        "urlpatterns = [path('admin/', admin.site.urls)]\n")
    Path("news/migrations/0001_extension.py").write_text(
        "from django.db import migrations\n"
        "from neardup.django import NeardupExtension\n"
        "class Migration(migrations.Migration):\n"
        "    operations = [NeardupExtension()]\n")
    Path("manage.py").write_text(
        "import ast, os, sys\n"
        "from django.conf import settings\n"
        "found = ast.literal_eval(os.environ['NEWS'])\n"
        "settings.configure(\n"
        "    INSTALLED_APPS=['django.contrib.postgres', 'django.contrib.contenttypes',\n"
        "        'django.contrib.auth', 'django.contrib.sessions', 'django.contrib.messages',\n"
        "        'django.contrib.admin', 'news'],\n"
        "    MIDDLEWARE=['django.contrib.sessions.middleware.SessionMiddleware',\n"
        "        'django.contrib.auth.middleware.AuthenticationMiddleware',\n"
        "        'django.contrib.messages.middleware.MessageMiddleware'],\n"
        "    TEMPLATES=[{'BACKEND': 'django.template.backends.django.DjangoTemplates',\n"
        "        'APP_DIRS': True, 'OPTIONS': {'context_processors': [\n"
        "            'django.template.context_processors.request',\n"
        "            'django.contrib.auth.context_processors.auth',\n"
        "            'django.contrib.messages.context_processors.messages']}}],\n"
        "    SECRET_KEY='tests', ROOT_URLCONF='news.urls', ALLOWED_HOSTS=['testserver'],\n"
        "    DEFAULT_AUTO_FIELD='django.db.models.BigAutoField',\n"
        "    DATABASES={'default': {\n"
        "        'ENGINE': 'django.db.backends.postgresql', 'NAME': found['dbname'],\n"
        "        'USER': found['user'], 'HOST': found['host'], 'PORT': found['port']}})\n"
        "if __name__ == '__main__':\n"
        "    from django.core.management import execute_from_command_line\n"
        "    execute_from_command_line(sys.argv)\n")


def manage(*arguments):
    """Runs a command of Django in a process of its own, as a person does."""
    run = subprocess.run([sys.executable, "-W", "error", "manage.py", *arguments],
                         capture_output=True, text=True)
    assert run.returncode == 0, (arguments, run.stdout, run.stderr)
    return run.stdout


def changed(before, after):
    models = Path("news/models.py")
    text = models.read_text()
    assert before in text
    models.write_text(text.replace(before, after))


def constraint(name="page_one_copy"):
    """The definition of a constraint in the database, or None."""
    import psycopg

    with psycopg.connect(sys.argv[2]) as connection:
        row = connection.execute("SELECT pg_get_constraintdef(oid) FROM pg_constraint"
                                 " WHERE conname = %s", [name]).fetchone()
    return row and row[0]


def migrations(_):
    manage("makemigrations", "news", "-n", "page")
    manage("migrate")
    defined = constraint()
    assert defined.startswith("EXCLUDE USING neardup (site WITH =, ball(fp, 6) WITH ~=) "), defined
    assert "radius='3'" in defined and "WHERE" in defined, defined
    # Further runs find nothing to change; a change elsewhere does not affect it.
    assert "No changes" in manage("makemigrations")
    assert "No changes" in manage("makemigrations", "--check")
    changed("image = models", "title = models.TextField(default='')\n    image = models")
    assert "page_one_copy" not in manage("makemigrations", "-n", "title", "-v", "3")
    changed('(Ball("fp", 6), "~=")', '(Ball("fp", 9), "~=")')
    printed = manage("makemigrations", "-n", "wider")
    assert printed.count("page_one_copy") == 2, printed
    changed("radius=3", "radius=4")
    printed = manage("makemigrations", "-n", "deeper")
    assert printed.count("page_one_copy") == 2, printed
    changed("radius=4, fillfactor=80", "radius=4")
    printed = manage("makemigrations", "-n", "filled")
    assert printed.count("page_fp") == 2, printed
    sql = manage("sqlmigrate", "news", "0004")
    assert "EXCLUDE USING neardup" in sql and 'DROP CONSTRAINT "page_one_copy"' in sql, sql
    manage("migrate")
    defined = constraint()
    assert "ball(fp, 9)" in defined and "radius='4'" in defined, defined
    assert "No changes" in manage("makemigrations", "--check")
    # Back to the first migration, and forth.
    manage("migrate", "news", "0001")
    assert constraint() is None
    manage("migrate")
    assert "ball(fp, 9)" in constraint()
    manage("makemigrations", "--empty", "news", "-n", "last")
    manage("squashmigrations", "news", "0002", "0006", "--no-input")
    assert "No changes" in manage("makemigrations", "--check")
    manage("check")


def start():
    """Makes the tables, and sets Django up in this process."""
    manage("makemigrations", "news", "-n", "page")
    manage("migrate")
    sys.path.insert(0, os.getcwd())
    import django

    import manage as _settings  # noqa: F401
    django.setup()


def fields(_):
    start()
    import neardup
    from django.core import serializers
    from django.core.exceptions import ValidationError
    from django.db import IntegrityError, connection, transaction
    from django.db.models import F
    from neardup.django import (
        Ball, FingerprintSimilarity, HammingDistance, JaccardDistance, MinHash, MinHash64, Simhash)
    from news.models import Page

    pdq = neardup.Fingerprint256(7)
    first = Page.objects.create(body=A, wide=neardup.simhash128(A), pdq=str(pdq))
    first.refresh_from_db()
    fp = neardup.minhash64(A, shingle=2, accents="remove")
    sig = neardup.minhash(A, hashes=64)
    assert (first.fp, first.sig, first.pdq) == (fp, sig, pdq) and len(first.sig) == 64
    assert first.wide == neardup.simhash128(A)
    rain = Page(body=C)
    rain.full_clean()
    rain.save()
    # The constraint, when the form is checked and in the database.
    copy = Page(body=B)
    try:
        copy.full_clean()
        raise AssertionError("a near-duplicate")
    except ValidationError as error:
        assert f"“Page object ({first.pk})” ({first.pk})" in str(error), error
        assert error.error_dict["__all__"][0].code == "near_duplicate", error
        assert error.error_dict["__all__"][0].params["existing"] == first
    try:
        with transaction.atomic():
            copy.save()
        raise AssertionError("a near-duplicate")
    except IntegrityError as error:
        assert error.__cause__.sqlstate == "23P01", error
    for site in ("b", "free", "free"):
        Page.objects.create(body=B, site=site)
    pages = Page.objects.filter(site__in=["a", "b"]).order_by("id")
    by_distance = pages.annotate(d=HammingDistance("fp", fp))
    assert [page.d == 0 for page in by_distance] == [True, False, True]
    assert list(by_distance.filter(d__lte=6)) == [pages[0], pages[2]]
    assert by_distance.order_by("d", "id").first() == first
    for alike in (FingerprintSimilarity("fp", fp),
                  FingerprintSimilarity("fp", MinHash64("body", shingle=2, accents="remove")),
                  FingerprintSimilarity("sig", sig)):
        assert first in pages.annotate(s=alike).filter(s__gte=0.8), alike
    assert pages.annotate(d=JaccardDistance("sig", sig)).filter(d__lte=0.2).count() == 2
    assert pages.annotate(d=JaccardDistance("sig", MinHash("body", hashes=64))).first().d == 0
    assert pages.filter(fp=fp).count() == pages.filter(fp__in=[fp]).count() == 2
    assert pages.filter(fp=F("fp"), pdq__isnull=True).count() == 2
    assert pages.annotate(s=Simhash("body", tokens="char", shingle=5)).first().s == \
        neardup.simhash(A, tokens="char", shingle=5)
    Page.objects.filter(pk=rain.pk).update(pdq=neardup.Fingerprint256(9))
    Page.objects.bulk_update([first], ["wide"])
    assert Page.objects.get(pdq=neardup.Fingerprint256(9)) == rain
    again, = serializers.deserialize("json", serializers.serialize("json", [first]))
    assert again.object.wide == first.wide and again.object.pdq == pdq
    try:
        Page(body="x y z", wide="12").full_clean()
        raise AssertionError("not 32 digits")
    except ValidationError as error:
        assert "32 hexadecimal digits" in str(error), error
    for bad in (lambda: MinHash64("body", weight="tf"), lambda: MinHash64("body", tokens="a'b")):
        try:
            bad()
            raise AssertionError("no such option")
        except (TypeError, ValueError):
            pass
    # The indexes serve such conditions.
    with connection.cursor() as cursor:
        cursor.execute("SET enable_seqscan = off")
    for name, query in (
        ("page_fp", Page.objects.annotate(d=HammingDistance("fp", fp)).filter(d__lte=6)),
        ("page_fp", Page.objects.annotate(s=FingerprintSimilarity("fp", fp)).filter(s__gte=0.8)),
        ("page_sig", Page.objects.annotate(d=JaccardDistance("sig", sig)).filter(d__lte=0.1)),
        ("page_simhash", Page.objects.extra(
            where=["simhash128(body, weight => 'log') <~> %s <= 3"], params=[str(first.wide)])),
    ):
        assert name in query.explain(), query.explain()
    ball = Page.objects.annotate(ball=Ball("fp", 6)).first().ball
    assert ball == f"<{fp},6>", ball


def json_values(_):
    """DjangoJSONEncoder writes all values as text, where Django uses it by itself."""
    start()
    import json

    import neardup
    from django.core.serializers.json import DjangoJSONEncoder
    from django.http import JsonResponse
    from news.models import Page

    page = Page.objects.create(body=A, wide=neardup.simhash128(A), pdq=neardup.Fingerprint256(7))
    page.refresh_from_db()
    values = {"fp": page.fp, "sig": page.sig, "wide": page.wide, "pdq": page.pdq}
    shown = {name: str(value) for name, value in values.items()}
    assert json.loads(json.dumps(values, cls=DjangoJSONEncoder)) == shown
    assert json.loads(JsonResponse({"pages": [values]}).content) == {"pages": [shown]}
    assert json.loads(JsonResponse(list(Page.objects.values("fp")), safe=False).content) == [
        {"fp": shown["fp"]}]
    assert neardup.Fingerprint(shown["fp"]) == page.fp
    try:
        json.dumps(object(), cls=DjangoJSONEncoder)
        raise AssertionError("any object")
    except TypeError:
        pass


def forms(_):
    """Forms refuse near-duplicates. They do not have the generated column."""
    start()
    import random

    from django.db import connection
    from django.forms import modelform_factory
    from django.test.utils import CaptureQueriesContext
    from news.models import Page

    first = Page.objects.create(body=A)
    shown = f"“Page object ({first.pk})” ({first.pk})"

    def errors(fields, data, instance=None):
        form = modelform_factory(Page, fields=fields)(data, instance=instance)
        if form.is_valid():
            form.save()
        return form.non_field_errors()

    # A new page, whose site is in the form, or not yet known.
    both = ["site", "body"]
    error, = errors(both, {"site": "a", "body": B})
    assert error == f"Near-duplicate of {shown}.", error
    assert not errors(both, {"site": "b", "body": B})
    assert not errors(both, {"site": "free", "body": B})
    assert not errors(both, {"site": "a", "body": C})
    form = modelform_factory(Page, fields=["body"])({"body": B})
    assert form.is_valid(), form.errors
    # Stored pages: a new text, another site, the same values, an unrelated change.
    rain = Page.objects.get(body=C)
    for fields in (both, ["body"]):
        assert shown in errors(fields, {"site": "a", "body": B}, rain)[0], fields
        assert not errors(fields, {"site": "a", "body": C}, rain), fields
    other = Page.objects.get(site="b")
    assert shown in errors(["site"], {"site": "a"}, other)[0]
    other.refresh_from_db()
    assert not errors(["site"], {"site": "c"}, other)
    assert not errors(["image"], {"image": 7}, rain)
    # A text without words is near nothing.
    assert not errors(both, {"site": "a", "body": "?!"})
    # Custom messages.
    constraint, = Page._meta.constraints
    before = constraint.violation_error_message
    constraint.violation_error_message = "%(name)s: see %(pk)s."
    assert errors(both, {"site": "a", "body": B}) == [f"page_one_copy: see {first.pk}."]
    constraint.violation_error_message = before
    # The constraint's index finds the row, among many.
    words = random.Random(1)
    Page.objects.bulk_create(
        [Page(body=" ".join(f"w{words.randrange(10**6)}" for _ in range(9)))
         for _ in range(3000)], ignore_conflicts=True)
    assert Page.objects.count() > 2500
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    with CaptureQueriesContext(connection) as captured:
        assert errors(both, {"site": "a", "body": B})
    query, = [query["sql"] for query in captured if "~=" in query["sql"]]
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN " + query)
        plan = "\n".join(line for line, in cursor.fetchall())
    assert "page_one_copy" in plan and "Seq Scan" not in plan, plan


def admin(_):
    """The admin shows the error, and never an error of the server."""
    start()
    from django.contrib.auth.models import User
    from django.forms import modelform_factory
    from django.test import Client
    from news.models import Page

    first = Page.objects.create(body=A)
    client = Client()
    client.force_login(User.objects.create_superuser("ann"))
    page = {"site": "a", "body": B, "wide": "", "pdq": "", "image": ""}
    answer = client.post("/admin/news/page/add/", page)
    assert answer.status_code == 200, answer.status_code
    text = answer.content.decode()
    assert f"Near-duplicate of “Page object ({first.pk})” ({first.pk})." in text, text
    answer = client.post("/admin/news/page/add/", {**page, "body": C})
    assert answer.status_code == 302, answer.content.decode()
    rain = Page.objects.get(body=C)
    change = f"/admin/news/page/{rain.pk}/change/"
    assert client.get(change).status_code == 200
    answer = client.post(change, page)
    assert answer.status_code == 200 and "Near-duplicate of" in answer.content.decode()
    answer = client.post(change, {**page, "body": C + " It is cold.", "wide": "0" * 32})
    assert answer.status_code == 302, answer.content.decode()
    # Fields of fingerprints: a value, the same value again, an empty one, and an invalid one.
    rain.refresh_from_db()
    assert int(rain.wide) == 0 and rain.pdq is None
    form = modelform_factory(Page, fields=["wide", "pdq"])({"wide": "0" * 32}, instance=rain)
    assert form.is_valid() and not form.has_changed(), form.changed_data
    assert client.get(change).content.decode().count("0" * 32) == 1
    answer = client.post(change, {**page, "body": C, "wide": "12"})
    assert answer.status_code == 200 and "32 hexadecimal digits" in answer.content.decode()
    answer = client.post(change, {**page, "body": C, "wide": ""})
    rain.refresh_from_db()
    assert answer.status_code == 302 and rain.wide is None
    assert Page.objects.count() == 2


def main():
    test, conninfo = sys.argv[1:]
    home = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        application(conninfo)
        globals()[test](conninfo)
        os.chdir(home)
    print(f"{test}: done")


main()
