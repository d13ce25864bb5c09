/** The two paths from the tailnet to this machine: serve with its headers, and raw forwarding (docs/protocols/tailscale.md#security). */
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { type AddressInfo, connect, createServer as createTcpServer } from "node:net";
import type { Server, Socket } from "node:net";
import type { FakeNode } from "./fake_tailscaled_node.ts";
import type { ForwarderPorts } from "./fake_tailscaled_types.ts";

/** Header by which a test says who the peer is; it does not reach the other side. */
export const PEER_HEADER = "x-test-peer";

/** Headers that serve sets or removes. */
const SERVES_OWN =
  /^(connection|forwarded|x-forwarded-(for|host|proto)|tailscale-(user-.*|headers-info|funnel-request))$/;

/** Opens both. */
export async function openForwarders(node: FakeNode): Promise<ForwarderPorts> {
  const agent = new Agent({ keepAlive: true });
  const serving = (port: 80 | 443) => createServer((req, res) => serve(node, port, agent, req, res));
  const [plain, secure, raw] = await Promise.all([
    listen(serving(80)),
    listen(serving(443)),
    listen(createTcpServer((socket) => forwardRaw(node, socket))),
  ]);
  return { plain, secure, raw };
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
  });
}

function serve(node: FakeNode, port: 80 | 443, agent: Agent, req: IncomingMessage, res: ServerResponse): void {
  if (!node.isReachable) return void req.socket.destroy();
  const host = req.headers.host ?? "";
  const target = node.targetOf(host, port);
  if (target === undefined) return void res.writeHead(404).end();
  const headers: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(req.headers)) {
    if (value !== undefined && name !== PEER_HEADER && !SERVES_OWN.test(name)) headers[name] = value;
  }
  Object.assign(headers, {
    "x-forwarded-for": req.headers[PEER_HEADER] ?? "100.64.0.7",
    "x-forwarded-host": host,
    "tailscale-user-login": "zoe@example.com",
    "tailscale-user-name": "=?utf-8?q?Zo=C3=AB?=",
    "tailscale-headers-info": "https://example.com/headers",
    ...(port === 443 ? { "x-forwarded-proto": "https" } : {}),
    ...(req.headers["x-test-funnel"] ? { "tailscale-funnel-request": "?1" } : {}),
  });
  const { hostname, port: targetPort, pathname } = new URL(target);
  const onward = request({
    agent,
    method: req.method,
    headers,
    host: hostname.replace(/^\[|\]$/g, ""),
    port: targetPort,
    path: `${pathname}${req.url}`,
  }, (answer) => {
    res.writeHead(answer.statusCode!, answer.headers);
    answer.pipe(res);
  });
  onward.on("error", () => res.headersSent ? res.destroy() : res.writeHead(502).end());
  res.on("close", () => onward.destroy());
  req.pipe(onward);
}

/** Reads the number of the node's port, then forwards the following bytes. */
function forwardRaw(node: FakeNode, socket: Socket): void {
  socket.on("error", () => socket.destroy());
  socket.once("data", (first) => {
    socket.pause();
    const end = first.indexOf(10);
    const port = Number(first.subarray(0, end).toString());
    if (!node.isReachable) return void socket.destroy();
    if (node.served?.TCP?.[port] !== undefined) {
      return void socket.end(
        "HTTP/1.1 404 Not Found\r\ncontent-length: 19\r\nconnection: close\r\n\r\n404 page not found\n",
      );
    }
    const onward = connect(port, "127.0.0.1", () => {
      onward.write(first.subarray(end + 1));
      socket.pipe(onward);
      onward.pipe(socket);
    });
    onward.on("error", () => socket.destroy());
  });
}
