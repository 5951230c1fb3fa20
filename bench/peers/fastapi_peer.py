"""FastAPI with the official x402 middleware; tasks in SQLite through aiosqlite."""

import contextlib
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiosqlite
import uvicorn
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel
from x402 import x402ResourceServer
from x402.http import FacilitatorConfig, HTTPFacilitatorClient
from x402.http.middleware.fastapi import PaymentMiddlewareASGI
from x402.mechanisms.evm.exact import ExactEvmServerScheme

PORT, FACILITATOR, DATA = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
TERMS = json.loads((Path(__file__).parent / "terms.json").read_text())


class Wish(BaseModel):
    """The body of a purchase."""

    prompt: str


@contextlib.asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with aiosqlite.connect(DATA / "tasks.db") as db:
        await db.execute("CREATE TABLE tasks (id TEXT PRIMARY KEY, task TEXT)")
        task = TERMS["task"]
        await db.execute("INSERT INTO tasks VALUES (?, ?)", (task["taskId"], json.dumps(task)))
        await db.commit()
        app.state.db = db
        yield


app = FastAPI(lifespan=lifespan)
server = x402ResourceServer(HTTPFacilitatorClient(FacilitatorConfig(url=FACILITATOR)))
server.register(TERMS["network"], ExactEvmServerScheme())
accepts = {
    "scheme": "exact",
    "payTo": TERMS["payTo"],
    "price": TERMS["price"],
    "network": TERMS["network"],
}
routes = {TERMS["route"]: {"accepts": accepts, "description": TERMS["description"]}}
app.add_middleware(PaymentMiddlewareASGI, routes=routes, server=server)


@app.get("/api/health")
async def health() -> dict[str, str]:
    return {"status": "ok"}


@app.post("/api/x402/instant")
async def buy(wish: Wish) -> dict[str, str]:
    return {"taskId": TERMS["task"]["taskId"], "prompt": wish.prompt}


@app.get("/api/task/{task_id}")
async def poll(task_id: str) -> dict[str, Any]:
    async with app.state.db.execute("SELECT task FROM tasks WHERE id = ?", (task_id,)) as cursor:
        row = await cursor.fetchone()
    if row is None:
        raise HTTPException(404)
    task: dict[str, Any] = json.loads(row[0])
    return task


uvicorn.run(app, port=PORT, loop="uvloop", http="httptools", access_log=False, log_level="warning")
