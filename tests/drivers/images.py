"""Runs docs/images.md on pictures that it draws.

Usage: images.py TITLE DOCUMENT CONNINFO.
"""

import os
import sys
from types import SimpleNamespace

import imagehash
import numpy
from applications import FRAMES, main, with_django
from PIL import ExifTags, Image, ImageDraw


def picture(seed):
    """Clouds of colour behind rectangles."""
    random = numpy.random.default_rng(seed)
    colours = random.integers(0, 256, (9, 12, 3), "uint8")
    image = Image.fromarray(colours).resize((640, 480))
    draw = ImageDraw.Draw(image)
    for left, top, width, height, *colour in random.integers(60, 240, (6, 7)).tolist():
        draw.rectangle((2 * left, top, 2 * left + width, top + height), tuple(colour))
    return image


def save_pictures():
    """Two pictures; a smaller, cropped copy of the first, rotated by EXIF; a mirrored copy."""
    harbour = picture(1)
    harbour.save("harbour.jpg", quality=95)
    picture(2).save("station.jpg", quality=95)
    copy = harbour.crop((8, 4, 632, 472)).resize((320, 240))
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6  # Viewers turn it by 90 degrees to the right.
    copy.transpose(Image.Transpose.ROTATE_90).save("upload.jpg", quality=60, exif=exif)
    harbour.transpose(Image.Transpose.TRANSVERSE).save("turned.jpg", quality=60)


def compute(pixels):
    """Stand-in for pdqhash.compute, with a hash of the same width. pdqhash has no wheel."""
    return imagehash.phash(Image.fromarray(pixels), 16).hash.flatten().astype(int), 100


def with_images(settings):
    for name in ("host", "port", "user"):
        os.environ[f"PG{name.upper()}"] = settings[name]
    os.environ["PGDATABASE"] = settings["dbname"]
    try:
        import pdqhash  # noqa: F401
    except ImportError:
        sys.modules["pdqhash"] = SimpleNamespace(compute=compute)
    save_pictures()
    with_django(settings, app="photos")


FRAMES["Images in Python and Django"] = with_images
main()
