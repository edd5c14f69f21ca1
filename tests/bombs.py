"""Small files that want to become large, or slow."""

import io

from PIL import Image


def jpeg_of_scans(number, side=4000):
    """Return a white progressive JPEG whose first refining scan is there so often."""
    sink = io.BytesIO()
    Image.new("L", (side, side), 255).save(sink, "JPEG", progressive=True)
    data = sink.getvalue()
    starts = [place for place in range(len(data)) if data[place : place + 2] == b"\xff\xda"]
    last = data[starts[-1] : -2]
    return data[:-2] + last * number + data[-2:]
