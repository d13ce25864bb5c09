/** ComfyUI's answers, read without trusting their shape. */
import { asObject, type JsonObject } from "../../json/type_guards.ts";

/** A picture that a run made. */
export interface ComfyPicture {
  filename: string;
  subfolder: string;
  type: string;
}

/** What came of a run. */
export interface ComfyHistory {
  isSuccess: boolean;
  /** Those that are kept, or where there are none the others. */
  pictures: ComfyPicture[];
  /** Data of the message that tells why it failed. */
  failure?: { type: string; data: Record<string, unknown> };
}

/** Reads the names an input can be set to, from either form of node description; `undefined` where there are none. */
export function namesIn(json: unknown, input: string): string[] | undefined {
  const node = Object.values(asObject(json))[0];
  const spec = asObject(asObject(asObject(node).input).required)[input];
  if (!Array.isArray(spec)) return undefined;
  const list = Array.isArray(spec[0]) ? spec[0] : asObject(spec[1]).options;
  return Array.isArray(list) ? list.filter((name) => typeof name === "string") : undefined;
}

/** Reads the history of one run; `undefined` while there is none. */
export function parseHistory(json: unknown, id: string): ComfyHistory | undefined {
  const entry = asObject(json)[id];
  if (typeof entry !== "object" || entry === null) return undefined;
  const { outputs, status } = entry as JsonObject;
  const messages = asObject(status).messages;
  const pictures = Object.values(asObject(outputs)).flatMap((output) => picturesIn(output));
  const kept = pictures.filter(({ type }) => type === "output");
  return {
    isSuccess: asObject(status).status_str !== "error",
    pictures: kept.length > 0 ? kept : pictures,
    failure: Array.isArray(messages) ? failureIn(messages) : undefined,
  };
}

/** Finds a run in the queue. */
export function placeIn(json: unknown, id: string): "running" | "pending" | "absent" {
  const { queue_running: running, queue_pending: pending } = asObject(json);
  const holds = (list: unknown) => Array.isArray(list) && list.some((entry) => Array.isArray(entry) && entry[1] === id);
  return holds(running) ? "running" : holds(pending) ? "pending" : "absent";
}

function picturesIn(output: unknown): ComfyPicture[] {
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

function failureIn(messages: unknown[]): ComfyHistory["failure"] {
  for (const message of messages) {
    const [type, data] = Array.isArray(message) ? message : [];
    if (type === "execution_error" || type === "execution_interrupted") return { type, data: asObject(data) };
  }
  return undefined;
}
