"""A purchase as code to copy: Python, TypeScript, curl, and an MCP client.

`frontend/src/code.ts` puts a buyer's own request into the same code, at `BODY`.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from gateway.domain import Endpoint
from gateway.domain.description import price_range, request_example
from gateway.settings import Settings
from gateway.web import wire
from gateway_shop.settings import play_key_of

# Marks the request's body. The templates turn it into an element.
BODY = "\ufffcBODY\ufffc"
_PYTHON = """\
# pip install 'x402[evm,requests]'; save as buy.py; run with BUYER_KEY set
import base64, os, requests
from eth_account import Account
from x402 import max_amount, x402ClientSync
from x402.http.clients.requests import x402_requests
from x402.mechanisms.evm import EthAccountSigner
from x402.mechanisms.evm.exact.register import register_exact_evm_client

wallet = x402ClientSync()
signer = EthAccountSigner(Account.from_key(os.environ["BUYER_KEY"]))
# The most that one payment may be, in millionths of a USDC.
register_exact_evm_client(wallet, signer, policies=[max_amount({units})])

# Only this session pays what answers 402.
paid = x402_requests(wallet).post(
    "{base}/api/x402/{slug}",
    json={body},
    timeout=30,
)
paid.raise_for_status()
task = {{"done": False}}
while not task["done"]:
    task = requests.get(f"{base}{{paid.json()['statusUrl']}}?wait=30").json()
print(task["result"] or task["error"])
"""
_TYPESCRIPT = """\
// npm install @x402/fetch @x402/evm viem tsx; save as buy.mts; npx tsx buy.mts
import {{ readFileSync }} from "node:fs";
import {{ ExactEvmScheme }} from "@x402/evm";
import {{ wrapFetchWithPaymentFromConfig }} from "@x402/fetch";
import {{ privateKeyToAccount }} from "viem/accounts";

const account = privateKeyToAccount(process.env.BUYER_KEY as `0x${{string}}`);
const pay = wrapFetchWithPaymentFromConfig(fetch, {{
  schemes: [{{ network: "{caip2}", client: new ExactEvmScheme(account) }}],
  spendControls: {{ maxAmountPerPayment: "${usdc}" }},
}});

const paid = await pay("{base}/api/x402/{slug}", {{
  method: "POST",
  headers: {{ "Content-Type": "application/json" }},
  body: JSON.stringify({body}),
}});
if (!paid.ok) throw new Error(await paid.text());
const {{ statusUrl }} = await paid.json();
let task;
do task = await (await fetch(`{base}${{statusUrl}}?wait=30`)).json();
while (task.done === false);
console.log(task.result ?? task.error);
"""
_CURL = """\
# 1. Ask for the price. This is free: the answer is a 402 that names it.
curl -i {base}/api/x402/{slug} --json {body}
"""
_TRANSFER = """
# 2. curl cannot sign, so transfer that amount of USDC on {chain} from any wallet to
#    {wallet}
#    and, once it is mined, send its hash with the request, signed by that wallet as
#    {base}/llms.txt describes: a hash is public, and without
#    payerSignature the first client to send it gets the task.
curl {base}/api/proxy-generate --json {direct}

# 3. Wait for the result.
curl '{base}/api/task/TASK_ID?wait=30'
"""
_PROOF = {"txHash": "0x…", "payerSignature": "0x…"}
# A buyer who transfers first and then cannot sign has paid for nothing.
_NO_TRANSFER = """
# curl cannot sign, and this gateway takes no payment without a signature: send no transfer
# before you can make one. Both ways to pay, step by step:
curl {base}/llms.txt
"""
_NOT_NOW = """
# Nothing can be paid now: make no transfer. The answer gives the reason; ask again later.
"""
_MCP = """\
# These programs show the price and a link to buy by hand. So that they buy by themselves, within
# limits, with a wallet of yours:
gateway mcp-config --url {base}

# Claude Code
claude mcp add --transport http {name} {base}/mcp

# Cursor, and others that read mcpServers
{config}
"""


def write(
    settings: Settings, endpoint: Endpoint, *, serves_mcp: bool, sells: bool = True
) -> Mapping[str, str]:
    """Return the code by language; `mcp` only if the gateway serves MCP.

    Unless it `sells`, the code has no transfer.
    """
    example = request_example(endpoint)
    _, highest = price_range(endpoint)
    paying = _NO_TRANSFER if settings.require_payer_signature else _TRANSFER
    curl = _CURL + (paying if sells else _NOT_NOW)
    facts = {
        "base": settings.base_url,
        "slug": endpoint.slug,
        "caip2": settings.chain.caip2,
        "wallet": settings.wallet,
        "chain": "the embedded chain" if play_key_of(settings) else settings.network,
        "units": highest,
        "usdc": wire.decimal(highest),
        "direct": _mark(_write_curl({"slug": endpoint.slug, **_PROOF, **example})),
    }
    code = {
        "python": _PYTHON.format(**facts, body=_mark(_write_python(example))),
        "typescript": _TYPESCRIPT.format(**facts, body=_mark(_write_typescript(example))),
        "curl": curl.format(**facts, body=_mark(_write_curl(example))),
    }
    if "fileBase64" not in example:
        code["python"] = code["python"].replace("import base64, os,", "import os,")
        code["typescript"] = code["typescript"].replace(
            'import { readFileSync } from "node:fs";\n', ""
        )
    return code | ({"mcp": _write_mcp(settings)} if serves_mcp else {})


def _mark(body: str) -> str:
    return f"{BODY}{body}{BODY}"


def _write_python(example: Mapping[str, Any]) -> str:
    name = example.get("fileName")
    encoded = f'base64.b64encode(open("{name}", "rb").read()).decode()'
    return _write_object(example, {"fileBase64": encoded})


def _write_typescript(example: Mapping[str, Any]) -> str:
    encoded = f'readFileSync("{example.get("fileName")}", "base64")'
    return _write_object(example, {"fileBase64": encoded})


def _write_object(example: Mapping[str, Any], expressions: Mapping[str, str]) -> str:
    rows = (
        f"{json.dumps(name)}: {expressions.get(name) or json.dumps(value, ensure_ascii=False)}"
        for name, value in example.items()
    )
    return "{" + ", ".join(rows) + "}"


def _write_curl(example: Mapping[str, Any]) -> str:
    name = example.get("fileName")
    text = json.dumps(dict(example), ensure_ascii=False).replace("'", "'\\''")
    file = f'"fileBase64": "\'"$(base64 < {name} | tr -d \'\\n\')"\'"'
    return "'" + re.sub(r'"fileBase64": "[^"]*"', lambda _: file, text) + "'"


def _write_mcp(settings: Settings) -> str:
    name = re.sub(r"[^a-z0-9]+", "-", settings.name.lower()).strip("-") or "gateway"
    config = {"mcpServers": {name: {"url": f"{settings.base_url}/mcp"}}}
    return _MCP.format(name=name, base=settings.base_url, config=json.dumps(config, indent=2))
