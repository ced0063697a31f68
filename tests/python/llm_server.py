#!/usr/bin/env python3
"""ratoon against a real server of models: llama.cpp's, through llama-cpp-python, with tiny models of random weights.

    python llm_server.py target/release/ratoon          # needs `pip install llama-cpp-python[server] gguf`

Such a model has no idea of anything. What it says is bound by the schema of the request, what it quotes stands in no text,
and it would go on for ever. Three of them are asked, which differ in what they like to say:

    long     goes on with a quote as long as it may, then ends: only `maxLength` ends the quote
    many     goes on with further mentions as long as it may: only `maxItems` ends the list
    endless  goes on with both: only `max_tokens` ends it, in the middle of an answer

The answers of the first two are valid and all that they tell of is refused; those of the third are cut, and no page is
asked about for ever.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import gguf
import numpy

WIDTH, HEADS, HIDDEN, CONTEXT = 32, 2, 64, 16384
# Besides single bytes, words and what comes between values, so that answers take fewer tokens.
WORDS = [" lorem ipsum dolor sit", " sed do eiusmod tempor", " ut labore et dolore", " magna aliqua enim"]
JOINTS = ['{"quote":"Lorem', '","when":"', '","who":"', '"},']
FIRST_BYTE, FIRST_WORD = 3, 3 + 256
FIRST_JOINT = FIRST_WORD + len(WORDS)
# How the schema bounds answers.
MOST_MENTIONS, MOST_CHARACTERS = 200, 1000
# By model, how much it likes to say what: characters, words, and what comes between values.
LIKES = {
    "long": ({'"': -3.0, "{": 1.0, "]": 0.5, ",": -3.0, " ": -4.0}, 2.0, -3.0),
    "many": ({'"': 0.0, "]": -3.0, ",": -2.0, " ": -4.0}, 1.5, 1.8),
    "endless": ({'"': -3.0, "]": -3.0, ",": -2.0, " ": -4.0}, 2.0, -3.0),
}
# Of what is no printable ASCII.
UNPRINTABLE = -3.0
# How long a server may take to end when it is told to.
GRACE = 5


def write_model(path, name, seed):
    """A Llama of one layer with random weights. The first dimension is the same for every token and left alone by the
    layer; through it the last matrix says what the model likes."""
    random = numpy.random.default_rng(seed)
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)] + [word.replace(" ", "▁") for word in WORDS + JOINTS]
    kinds = [gguf.TokenType.UNKNOWN] + [gguf.TokenType.CONTROL] * 2 + [gguf.TokenType.BYTE] * 256
    kinds += [gguf.TokenType.NORMAL] * len(WORDS + JOINTS)
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_name(name)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * FIRST_WORD + [-float(i) for i in range(len(WORDS + JOINTS))])
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)

    def weights(*shape):
        return random.normal(0, 1 / numpy.sqrt(shape[-1]), shape).astype(numpy.float32)

    def without_first(matrix):
        matrix[0] = 0
        return matrix

    ones = numpy.ones(WIDTH, dtype=numpy.float32)
    embedding = weights(len(tokens), WIDTH)
    embedding[:, 0] = 12
    output = weights(len(tokens), WIDTH)
    output[:, 0] = 0
    output[FIRST_BYTE : FIRST_BYTE + 32, 0] = UNPRINTABLE
    output[FIRST_BYTE + 127 : FIRST_WORD, 0] = UNPRINTABLE
    characters, words, joints = LIKES[name]
    output[FIRST_WORD:, 0] = words
    output[FIRST_JOINT:, 0] = joints
    for character, liked in characters.items():
        output[FIRST_BYTE + ord(character), 0] = liked
    writer.add_tensor("token_embd.weight", embedding)
    writer.add_tensor("blk.0.attn_norm.weight", ones)
    for part in ("q", "k", "v"):
        writer.add_tensor(f"blk.0.attn_{part}.weight", weights(WIDTH, WIDTH))
    writer.add_tensor("blk.0.attn_output.weight", without_first(weights(WIDTH, WIDTH)))
    writer.add_tensor("blk.0.ffn_norm.weight", ones)
    writer.add_tensor("blk.0.ffn_gate.weight", weights(HIDDEN, WIDTH))
    writer.add_tensor("blk.0.ffn_up.weight", weights(HIDDEN, WIDTH))
    writer.add_tensor("blk.0.ffn_down.weight", without_first(weights(WIDTH, HIDDEN)))
    writer.add_tensor("output_norm.weight", ones)
    writer.add_tensor("output.weight", output)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Server:
    """llama.cpp's server with one of the models, until it is left."""

    def __init__(self, folder, name, seed):
        self.log = folder / f"{name}.log"
        model = folder / f"{name}.gguf"
        write_model(model, name, seed)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        command = [sys.executable, "-m", "llama_cpp.server", "--model", str(model), "--host", "127.0.0.1"]
        command += ["--port", str(self.port), "--n_ctx", str(CONTEXT), "--chat_format", "chatml", "--n_threads", "1"]
        self.process = subprocess.Popen(command, stdout=open(self.log, "wb"), stderr=subprocess.STDOUT)

    def __enter__(self):
        until = time.monotonic() + 120
        while time.monotonic() < until and self.process.poll() is None:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v1/models", timeout=5).read()
                return self
            except OSError:
                time.sleep(0.3)
        self.__exit__()
        raise SystemExit(f"the server did not start:\n{self.log.read_text()}")

    def __exit__(self, *_):
        """It may be in the middle of an answer that nobody waits for, and does not hear then."""
        self.process.terminate()
        try:
            self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def answered(self):
        """How many requests it has answered."""
        return self.log.read_text(errors="replace").count('"POST /v1/chat/completions HTTP/1.1" 200')


class Site:
    """A night of pages and a pipeline file with a model."""

    def __init__(self, program, folder, server, name, pages, max_tokens):
        self.program, self.folder, self.server = program, folder / name, server
        night = self.folder / "snapshots/2024-01-01"
        night.mkdir(parents=True)
        lines = []
        for i, page in enumerate(pages):
            (night / f"{i}.html").write_text(page)
            lines.append(json.dumps({"url": f"http://site.test/{i}", "file": f"{i}.html", "status": 200}))
        (night / "manifest.jsonl").write_text("\n".join(lines) + "\n")
        (self.folder / "event.md").write_text("Find who speaks: {attributes}.\n")
        (self.folder / "p.toml").write_text(
            "[corpus]\nsnapshots = 'snapshots'\nstore = 'store'\n[[extractor]]\nname = 'event'\nkind = 'llm'\n"
            f"endpoint = 'http://127.0.0.1:{server.port}/v1'\nmodel = '{name}'\nprompt = 'event.md'\nin_flight = 1\n"
            "attributes = { who = 'string', when = { type = 'string', optional = true } }\n"
            f"max_tokens = {max_tokens}\ntimeout = '10m'\n"
        )

    def ratoon(self, *arguments, code=0):
        ended = subprocess.run([self.program, *arguments], cwd=self.folder, capture_output=True, text=True)
        if ended.returncode != code:
            log = self.server.log.read_text(errors="replace")[-3000:]
            raise SystemExit(f"ratoon {' '.join(arguments)}: {ended.returncode}\n{ended.stdout}{ended.stderr}\n{log}")
        return ended

    def sql(self, query):
        return json.loads(self.ratoon("sql", "p.toml", query, "--format", "json").stdout)


PAGES = ["<p>Ada Lane speaks at 9.</p>", "<p>Nobody speaks.</p>", "<p>12</p>"]


def valid(answer):
    """Whether an answer is as the schema says; how many mentions it has, and how long its longest value is."""
    longest = 0
    assert set(answer) == {"mentions"} and len(answer["mentions"]) <= MOST_MENTIONS, answer
    for mention in answer["mentions"]:
        assert set(mention) == {"quote", "who", "when"}, mention
        assert isinstance(mention["quote"], str) and isinstance(mention["who"], str), mention
        assert mention["when"] is None or isinstance(mention["when"], str), mention
        longest = max(longest, *(len(value or "") for value in mention.values()))
    assert longest <= MOST_CHARACTERS, longest
    return len(answer["mentions"]), longest


def bounded(program, folder, name, seed, pages):
    """Answers that only the bounds of the schema end: valid, and all that they tell of is refused."""
    with Server(folder, name, seed) as server:
        site = Site(program, folder, server, name, pages, CONTEXT - 1500)
        started = time.monotonic()
        said = site.ratoon("run", "p.toml", "-v")
        print(f"{name}: {len(pages)} pages in {time.monotonic() - started:.0f} s")
        print(*(f"  {line}" for line in said.stderr.splitlines() if "schema" in line), sep="\n")
        rows = site.sql("select * from answers_event")
        assert len(rows) == len(pages) and all(row["status"] == "ok" and row["attempts"] == 1 for row in rows), rows
        told, most, longest = 0, 0, 0
        for row in rows:
            mentions, length = valid(json.loads(row["answer"]))
            print(f"  {row['url']}: {row['output_tokens']} tokens, {mentions} mentions, the longest value has {length} characters")
            told, most, longest = told + mentions, max(most, mentions), max(longest, length)
        extractions = site.sql("select * from extractions")
        refused = sum(row["refused"] for row in extractions)
        print(f"  {told} mentions told of, {refused} refused")
        assert told == refused > 0 and all(row["status"] == "ok" and row["mentions"] == 0 for row in extractions), extractions
        assert site.sql("select * from mentions_event") == []
        answered = server.answered()
        assert answered == len(pages), answered
        site.ratoon("run", "p.toml")
        site.ratoon("run", "p.toml", "--force", "--snapshot", "2024-01-01")
        site.ratoon("verify", "p.toml", "--all")
        assert server.answered() == answered, "what was answered is asked again"
        print(f"  {answered} requests were answered; none when run again, forced and verified")
    return most, longest


def cut(program, folder, seed):
    """Answers that only `max_tokens` ends: cut, so they are no answers, and nobody asks for ever."""
    with Server(folder, "endless", seed) as server:
        site = Site(program, folder, server, "endless", PAGES, 120)
        said = site.ratoon("run", "p.toml", "-v", code=3)
        print("endless:", *(line for line in said.stderr.splitlines() if "cut" in line), sep="\n  ")
        rows = site.sql("select * from extractions")
        assert len(rows) == len(PAGES) and all(row["status"] == "failed" and row["mentions"] == 0 for row in rows), rows
        assert all("cut" in row["error"] for row in rows), rows
        attempts = [row["attempts"] for row in site.sql("select * from answers_event")]
        print(f"  attempts: {attempts}, {server.answered()} requests were answered")
        assert attempts == [3] * len(PAGES) and server.answered() == sum(attempts), attempts
        assert site.sql("select * from mentions_event") == []


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ratoon")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    program = os.path.abspath(args.ratoon)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        _, longest = bounded(program, folder, "long", args.seed, PAGES)
        assert longest == MOST_CHARACTERS, "nothing went on until its bound"
        most, _ = bounded(program, folder, "many", args.seed, PAGES[:1])
        assert most == MOST_MENTIONS, "nothing went on until its bound"
        cut(program, folder, args.seed)
    print("answers bound by a schema are valid, what is invented is refused, and everything ends")


if __name__ == "__main__":
    main()
