#!/usr/bin/env python3
"""A model on loopback: `model.py TALLY` prints its address, answers every request after a fixed time and notes it.

Speaks the protocol of OpenAI-compatible servers. It answers by a rule: what the rule matches in the last message is a
mention. Connections stay open.
"""

import asyncio
import hashlib
import json
import pathlib
import re
import sys

import work


def answer(body: bytes, tally: pathlib.Path) -> bytes:
    text = json.loads(body)["messages"][-1]["content"]
    data = text.encode()
    with tally.open("a") as out:
        out.write(f"{hashlib.blake2b(data, digest_size=8).hexdigest()} {len(data)}\n")
    found = [{"quote": match[0]} for match in re.finditer(work.RULE, text)]
    message = {"role": "assistant", "content": json.dumps({"mentions": found})}
    usage = {"prompt_tokens": len(body) // 4, "completion_tokens": len(message["content"]) // 4}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    return json.dumps({"object": "chat.completion", "choices": choices, "usage": usage}).encode()


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tally: pathlib.Path) -> None:
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = int(re.search(rb"(?i)content-length: *([0-9]+)", head)[1])
            body = await reader.readexactly(length)
            done = asyncio.get_running_loop().time() + work.DELAY
            reply = answer(body, tally)
            await asyncio.sleep(done - asyncio.get_running_loop().time())
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(reply), reply))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main() -> None:
    tally = pathlib.Path(sys.argv[1])
    server = await asyncio.start_server(lambda r, w: serve(r, w, tally), "127.0.0.1", 0, limit=1 << 24)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
