/** ComfyUI's websocket: what happens while a run is under way. It may fail or fall silent; the history is the truth. */

/** What comes over it. */
export interface ComfyListener {
  onMessage(type: string, data: Record<string, unknown>): void;
  /** A picture as it is now: JPEG or PNG. */
  onPreview(bytes: Uint8Array<ArrayBuffer>): void;
}

/** An open socket. */
export interface ComfySocket {
  close(): void;
}

/** The runtime's own, which the browser's types that the page needs do not know. */
type WithHeaders = new (url: string, options: { headers: Record<string, string> }) => WebSocket;

/** Types of binary frames (docs/protocols/images.md#websocket). */
const PREVIEW = 1;
const MAX_FRAME_CHARS = 8 * 1024 * 1024;

/**
 * Opens the socket of one client. The caller has judged the address.
 *
 * @param baseUrl Of the server, with `http` or `https`.
 * @returns `undefined` when it does not open in time.
 */
export async function openComfySocket(
  baseUrl: string,
  clientId: string,
  options: { headers: Record<string, string>; withinMs: number; listener: ComfyListener },
): Promise<ComfySocket | undefined> {
  const { headers, withinMs, listener } = options;
  let socket: WebSocket;
  try {
    socket = new (WebSocket as unknown as WithHeaders)(
      `${baseUrl.replace(/^http/, "ws")}/ws?clientId=${encodeURIComponent(clientId)}`,
      {
        headers,
      },
    );
  } catch {
    return undefined;
  }
  socket.binaryType = "arraybuffer";
  socket.onmessage = ({ data }) => receive(data, listener);
  const close = () => {
    socket.onmessage = null;
    try {
      socket.close();
    } catch {
      // It was never open.
    }
  };
  const opened = Promise.withResolvers<boolean>();
  socket.onopen = () => opened.resolve(true);
  socket.onerror = () => opened.resolve(false);
  socket.onclose = () => opened.resolve(false);
  const timer = setTimeout(() => opened.resolve(false), withinMs);
  const isOpen = await opened.promise;
  clearTimeout(timer);
  if (isOpen) return { close };
  close();
  return undefined;
}

function receive(data: unknown, listener: ComfyListener): void {
  if (data instanceof ArrayBuffer) {
    // Event, kind of picture, picture; other events are custom nodes' own.
    if (data.byteLength > 8 && new DataView(data).getUint32(0) === PREVIEW) listener.onPreview(new Uint8Array(data, 8));
    return;
  }
  if (typeof data !== "string" || data.length > MAX_FRAME_CHARS) return;
  try {
    const { type, data: content } = JSON.parse(data);
    if (typeof type === "string" && typeof content === "object" && content !== null) listener.onMessage(type, content);
  } catch {
    // Some custom node's frame that is no JSON.
  }
}
