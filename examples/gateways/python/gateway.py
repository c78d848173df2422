"""A gateway before a payment API: POST /refunds {"order": "A-1", "charge": "ch_1", "amount": 1250}.

200 is the refund, 403 a deny, 202 a hold: send the same request again once it is approved. An order is refunded
once, however often it is sent.
"""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import writ

client = writ.Client()  # WRIT_URL, WRIT_API_KEY, WRIT_POLICY_ID, WRIT_AGENT_ID
payments = httpx.Client(base_url=os.environ["PAYMENTS_URL"], headers={"Authorization": f"Bearer {os.environ['PAYMENTS_KEY']}"})


@client.guard(
    action_type="payment.refund",
    resource="https://api.payments.example/v1/refunds",
    cost=lambda order, charge, amount: writ.Cost(amount, "EUR"),
    metadata=lambda order, charge, amount: {"order": order, "charge": charge},
    key=lambda order, charge, amount: order,
    wait=0,
)
def refund(order: str, charge: str, amount: int) -> dict:
    answer = payments.post("/v1/refunds", data={"charge": charge, "amount": amount}, headers={"Idempotency-Key": order})
    return answer.raise_for_status().json()


class Gateway(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        try:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, body = 200, refund(str(asked["order"]), str(asked["charge"]), int(asked["amount"]))
        except (ValueError, KeyError, TypeError):
            status, body = 400, {"error": "want order, charge and amount"}
        except writ.Denied as denied:
            status, body = 403, {"error": denied.decision.explain()}
        except writ.Held as held:
            status, body = 202, {"approval": held.approval_id, "error": str(held)}
        except writ.AlreadyRedeemed as e:
            status, body = 409, {"error": f"{e}: look whether the order was refunded"}
        except (writ.WritError, httpx.HTTPError) as e:
            status, body = 503, {"error": str(e)}
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Gateway).serve_forever()
