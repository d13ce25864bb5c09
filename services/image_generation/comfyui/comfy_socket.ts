/** ComfyUI's web socket, which reports the progress of runs. It is optional: the result comes from the history. */

/** Receives its messages. */
export interface ComfyListener {
  onMessage(type: string, data: Record<string, unknown>): void;
  /** A preview: JPEG or PNG. */
  onPreview(bytes: Uint8Array<ArrayBuffer>): void;
}

/** An open socket. */
export interface ComfySocket {
  close(): void;
}

/** Deno's constructor with headers, which the DOM types don't have. */
type WithHeaders = new (url: string, options: { headers: Record<string, string> }) => WebSocket;

/** Kind of binary frames (docs/protocols/images.md, "WebSocket"). */
const PREVIEW = 1;
const MAX_FRAME_CHARS = 8 * 1024 * 1024;

/**
 * Opens the socket of one client. The caller has checked the address.
 *
 * @param baseUrl `http` or `https`.
 * @returns undefined if it does not open in time
 */
export async function openComfySocket(
  baseUrl: string,
  clientId: string,
  options: { headers: Record<string, string>; timeoutMs: number; listener: ComfyListener },
): Promise<ComfySocket | undefined> {
  const { headers, timeoutMs, listener } = options;
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
      // never opened
    }
  };
  const opened = Promise.withResolvers<boolean>();
  socket.onopen = () => opened.resolve(true);
  socket.onerror = () => opened.resolve(false);
  socket.onclose = () => opened.resolve(false);
  const timer = setTimeout(() => opened.resolve(false), timeoutMs);
  const isOpen = await opened.promise;
  clearTimeout(timer);
  if (isOpen) return { close };
  close();
  return undefined;
}

function receive(data: unknown, listener: ComfyListener): void {
  if (data instanceof ArrayBuffer) {
    // Four bytes of event type, four of image type, then the image. Custom nodes send other events.
    if (data.byteLength > 8 && new DataView(data).getUint32(0) === PREVIEW) listener.onPreview(new Uint8Array(data, 8));
    return;
  }
  if (typeof data !== "string" || data.length > MAX_FRAME_CHARS) return;
  try {
    const { type, data: content } = JSON.parse(data);
    if (typeof type === "string" && typeof content === "object" && content !== null) listener.onMessage(type, content);
  } catch {
    // Custom nodes may send text that isn't JSON.
  }
}
