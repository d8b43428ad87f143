"""Chat requests to measure with: the same at every run.

Prompts are English-like text with line breaks and quotes, so that JSON strings have escapes as real ones do. Bodies
come in 8 groups that share a system prompt of half the text.
"""
import json
import random
from pathlib import Path

# Bytes of a body, and how many different ones there are.
SIZES = {"small": (600, 64), "medium": (8 << 10, 64), "large": (64 << 10, 16), "huge": (1 << 20, 4)}
WORDS = """the of and to in is you that it he was for on are as with his they at be this have from or one had by word
but not what all were we when your can said there use an each which she do how their if will up other about out many
then them these so some her would make like him into time has look two more write go see number no way could people
model token cache router prefix request engine queue latency throughput batch prompt answer system user context memory
block hash""".split()


def text(rng, length):
    out, size, on_line = [], 0, 0
    while size < length:
        word = rng.choice(WORDS)
        if rng.random() < 0.02:
            word = f'"{word}"'
        on_line = (on_line + 1) % 12
        out.append(word + (" " if on_line else "\n"))
        size += len(word) + 1
    return "".join(out)[:length]


def body(seed, size, stream):
    shared, own = random.Random(1000 + seed % 8), random.Random(seed)
    length = max(size - 230, 120)  # without the JSON around it
    rest = length - length // 2
    messages = [("system", text(shared, length // 2))]
    if size <= 1024:
        messages.append(("user", text(own, rest)))
    else:
        messages += [("user", text(own, rest * 2 // 5)), ("assistant", text(own, rest // 5)), ("user", text(own, rest * 2 // 5))]
    request = {"model": "mock-model", "messages": [{"role": r, "content": c} for r, c in messages], "max_tokens": 128, "temperature": 0.7}
    if stream:
        request |= {"stream": True, "stream_options": {"include_usage": True}}
    return json.dumps(request, separators=(",", ":"))


def write(folder):
    """Writes NAME-NN.json and NAME-stream-NN.json for every size, unless they are there."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, (size, count) in SIZES.items():
        for i in range(count):
            for kind, stream in (("", False), ("-stream", True)):
                path = folder / f"{name}{kind}-{i:02d}.json"
                if not path.exists():
                    path.write_text(body(i, size, stream))
