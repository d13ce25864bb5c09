/** Large requests, and clients that don't read responses, for tests and benchmarks of memory and speed. */
import { crc32, deflateRawSync } from "node:zlib";
import { numbers, sampleText } from "../../bench/sample_chat.ts";
import { writeZip } from "../../../services/storage/zip/zip_writer.ts";
import { joined } from "./joined.ts";

const encoder = new TextEncoder();
const ENDS = ["done", "failed", "cancelled"];
const POLL_MS = 50;

/**
 * Creates the body of a PUT of a conversation.
 *
 * @param options.messageChars Of each message.
 * @param options.hasVersions Every other message has a second version, which is part of the size.
 */
export function largeConversation(
  sizeBytes: number,
  { seed = 1, messageChars = 3_800, hasVersions = false } = {},
): Uint8Array<ArrayBuffer> {
  const next = numbers(seed);
  const source = Array.from({ length: 2 + messageChars / 50 }, () => sampleText(next)).join(" ");
  const messages: unknown[] = [];
  for (let size = 0; size < sizeBytes; size += messageChars + 60) {
    const at = next() % (source.length - messageChars);
    const role = messages.length % 2 === 0 ? "user" : "assistant";
    const content = source.slice(at, at + messageChars);
    const message = { id: `m${seed}-${messages.length}`, role, content };
    const isDouble = hasVersions && role === "assistant";
    if (isDouble) size += messageChars + 20;
    messages.push(
      isDouble ? { ...message, variants: [{ content: `${content}?` }, { content }], active_variant: 1 } : message,
    );
  }
  return encoder.encode(JSON.stringify({ title: "Large", messages }));
}

/**
 * Creates a ZIP archive of SillyTavern chats that differ only in their names: small, but large once unpacked.
 *
 * @param options.text Of each message.
 * @param options.level Of compression: with 9 the archive is a third to a half as large.
 */
export async function zipOfChats(
  count: number,
  chatBytes: number,
  { text = "The light falls. ".repeat(120), level = 6 } = {},
): Promise<Uint8Array<ArrayBuffer>> {
  const message = {
    name: "Fox",
    is_user: false,
    mes: text,
    send_date: "June 19, 2023 2:20pm",
  };
  const line = `${JSON.stringify(message)}\n`;
  const chat = encoder.encode(line.repeat(Math.ceil(chatBytes / line.length)));
  const packed = deflateRawSync(chat, { level });
  const entry = { isDeflated: true, crc: crc32(chat), sizeBytes: chat.length, packedBytes: packed.length };
  const entries = Array.from({ length: count }, (_, n) => ({ path: `chat-${n}.jsonl`, ...entry, content: [packed] }));
  return joined(await Array.fromAsync(writeZip(entries, { isLarge: false })));
}

/** Imports a zip of chats and waits until the job has ended. */
export async function importChats(
  url: string,
  zip: Uint8Array<ArrayBuffer>,
): Promise<{ state: string; added: number }> {
  type Job = { id: string; state: string; detail?: { counts: { conversation: { added: number } } } };
  const headers = { "Content-Type": "application/octet-stream" };
  let job: Job = await jsonOf(await fetch(`${url}/api/import?kind=tavern`, { method: "POST", headers, body: zip }));
  while (!ENDS.includes(job.state)) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    job = await jsonOf(await fetch(`${url}/api/jobs/${job.id}`));
  }
  return { state: job.state, added: job.detail?.counts.conversation.added ?? 0 };
}

async function jsonOf<T>(answer: Response): Promise<T> {
  if (!answer.ok) throw new Error(`${answer.url} answered ${answer.status}: ${await answer.text()}`);
  return await answer.json();
}

/** Sends many concurrent requests without reading the responses. Disposing of it disconnects. */
export async function unreadAnswers(port: number, path: string, count: number): Promise<Disposable> {
  const connections: Deno.TcpConn[] = [];
  const request = encoder.encode(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
  for (let n = 0; n < count; n++) {
    const connection = await Deno.connect({ hostname: "127.0.0.1", port });
    connections.push(connection);
    await connection.write(request);
  }
  return {
    [Symbol.dispose]() {
      for (const connection of connections) connection.close();
    },
  };
}
