/** Parses ComfyUI's responses leniently (docs/protocols/images.md, "ComfyUI"). */
import { asObject, type JsonObject } from "../../json/type_guards.ts";

/** An image file of a run. */
export interface ComfyFile {
  filename: string;
  subfolder: string;
  type: string;
}

/** The result of a run. */
export interface ComfyHistory {
  isSuccess: boolean;
  /** The saved images, or the previews if none were saved. */
  images: ComfyFile[];
  /** The message that explains a failure. */
  failure?: { type: string; data: Record<string, unknown> };
}

/** Parses the options of an input, from either form of node description. Returns undefined if it has none. */
export function parseOptions(json: unknown, input: string): string[] | undefined {
  const node = Object.values(asObject(json))[0];
  const spec = asObject(asObject(asObject(node).input).required)[input];
  if (!Array.isArray(spec)) return undefined;
  const list = Array.isArray(spec[0]) ? spec[0] : asObject(spec[1]).options;
  return Array.isArray(list) ? list.filter((name) => typeof name === "string") : undefined;
}

/** Parses the history of one run. Returns undefined if it has not ended. */
export function parseHistory(json: unknown, id: string): ComfyHistory | undefined {
  const entry = asObject(json)[id];
  if (typeof entry !== "object" || entry === null) return undefined;
  const { outputs, status } = entry as JsonObject;
  const messages = asObject(status).messages;
  const images = Object.values(asObject(outputs)).flatMap((output) => parseFiles(output));
  const saved = images.filter(({ type }) => type === "output");
  return {
    isSuccess: asObject(status).status_str !== "error",
    images: saved.length > 0 ? saved : images,
    failure: Array.isArray(messages) ? findFailure(messages) : undefined,
  };
}

/** Finds a run in the queue. */
export function findQueueState(json: unknown, id: string): "running" | "pending" | "absent" {
  const { queue_running: running, queue_pending: pending } = asObject(json);
  const contains = (list: unknown) =>
    Array.isArray(list) && list.some((entry) => Array.isArray(entry) && entry[1] === id);
  return contains(running) ? "running" : contains(pending) ? "pending" : "absent";
}

function parseFiles(output: unknown): ComfyFile[] {
  const { images } = asObject(output);
  if (!Array.isArray(images)) return [];
  return images.flatMap((image) => {
    const { filename, subfolder, type } = asObject(image);
    if (typeof filename !== "string" || filename === "") return [];
    return [{
      filename,
      subfolder: typeof subfolder === "string" ? subfolder : "",
      type: typeof type === "string" ? type : "output",
    }];
  });
}

function findFailure(messages: unknown[]): ComfyHistory["failure"] {
  for (const message of messages) {
    const [type, data] = Array.isArray(message) ? message : [];
    if (type === "execution_error" || type === "execution_interrupted") return { type, data: asObject(data) };
  }
  return undefined;
}
