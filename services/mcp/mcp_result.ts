/** Converts the result of a tool call: to parts that replies store and send to the model, or to an error. */
import { Buffer } from "node:buffer";
import type { ToolOutput, ToolOutputPart } from "../tools/tool_registry.ts";
import { AppError } from "../errors.ts";
import type { JSONRPCErrorResponse, RequestId } from "./sdk.ts";

/** One item of a result, in MCP's format. */
type ContentItem =
  | { type: "text"; text: string }
  | { type: "image"; data: string; mimeType: string }
  | { type: "audio"; data: string; mimeType: string }
  | { type: "resource_link"; uri: string; name?: string }
  | { type: "resource"; resource: { uri: string; mimeType?: string; text?: string; blob?: string } };

/** The result of `tools/call`. */
export interface ResultContent {
  content: ContentItem[];
  structuredContent?: unknown;
  isError?: boolean;
}

/**
 * Converts a result.
 *
 * A result that only has structured content becomes its JSON. The bytes of embedded resources that aren't text are
 * omitted, but not their links.
 *
 * @param maxBytes Limit for all parts together. Text beyond it is truncated; images and recordings beyond it are
 *   dropped.
 * @param mask Removes secrets from each text before it's truncated.
 */
export function toToolOutput(result: ResultContent, maxBytes: number, mask = (text: string) => text): ToolOutput {
  let leftBytes = maxBytes;
  let truncated = false;
  const parts: ToolOutputPart[] = [];
  const addText = (original: string) => {
    const text = mask(original);
    const cut = truncateText(text, leftBytes);
    truncated ||= cut.length < text.length;
    leftBytes -= Buffer.byteLength(cut);
    if (cut !== "" || text === "") parts.push({ type: "text", text: cut });
  };
  const addMedia = (type: "image" | "audio", base64: string, contentType: string) => {
    if (base64.length * 3 / 4 > leftBytes) {
      truncated = true;
      return;
    }
    const data = new Uint8Array(Buffer.from(base64, "base64"));
    leftBytes -= data.length;
    parts.push({ type, data, contentType });
  };
  const addLink = (uri: string, name?: string) => {
    parts.push({ type: "link", uri: mask(uri).slice(0, 2_000), ...(name !== undefined && { name: mask(name) }) });
  };
  for (const item of result.content) {
    if (item.type === "text") addText(item.text);
    else if (item.type === "image" || item.type === "audio") addMedia(item.type, item.data, item.mimeType);
    else if (item.type === "resource_link") addLink(item.uri, item.name);
    else if (item.resource.text !== undefined) addText(item.resource.text);
    else if (item.resource.blob !== undefined && item.resource.mimeType?.startsWith("image/")) {
      addMedia("image", item.resource.blob, item.resource.mimeType);
    } else addLink(item.resource.uri);
  }
  if (result.content.length === 0 && result.structuredContent !== undefined) {
    addText(JSON.stringify(result.structuredContent));
  }
  return { parts, isError: result.isError === true, truncated };
}

/** Truncates text to a number of UTF-8 bytes, between characters. */
function truncateText(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes) return text;
  const bytes = new Uint8Array(Math.max(0, maxBytes));
  const { read } = new TextEncoder().encodeInto(text, bytes);
  return text.slice(0, read);
}

/** https://www.jsonrpc.org/specification#error_object */
const INTERNAL_ERROR = -32_603;

/** What a 401 or 403 response says about signing in. */
export interface SignInChallenge {
  /** Address of the server's description of its authorization server (RFC 9728). */
  resourceMetadataUrl?: URL;
  /** Requested scopes, separated by spaces. */
  scope?: string;
}

/** Thrown if the server requires a sign-in. */
export class SignInNeededError extends AppError {
  readonly challenge: SignInChallenge;

  constructor(serverName: string, challenge: SignInChallenge) {
    super("upstream_error", `The tool server "${serverName}" requires a sign-in. Sign in under Settings > Tools`);
    this.name = "SignInNeededError";
    this.challenge = challenge;
  }
}

/**
 * The `data` of JSON-RPC errors that a transport creates. A server's own errors may have any code, so codes can't
 * distinguish the two.
 */
export class TransportFault {
  /** @param why What the server did wrong: `"its response isn't valid MCP"`. */
  constructor(readonly why: string) {}
}

/** Creates the response to a request that the server can no longer answer. */
export function createFaultResponse(id: RequestId, why: string): JSONRPCErrorResponse {
  return { jsonrpc: "2.0", id, error: { code: INTERNAL_ERROR, message: why, data: new TransportFault(why) } };
}

/** Replaces secrets with `[secret]`. Values shorter than four characters aren't secrets and would garble the text. */
export function maskSecrets(text: string, secrets: readonly string[]): string {
  let masked = text;
  // A secret may be the start of another.
  for (const secret of secrets.toSorted((a, b) => b.length - a.length)) {
    if (secret.length < 4) continue;
    for (const form of new Set([secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)])) {
      masked = masked.replaceAll(form, "[secret]");
    }
  }
  return masked;
}

/** Formats a number of bytes: `"8 MiB"`. */
export function formatMebibytes(bytes: number): string {
  return `${Math.round(bytes / 1024 / 1024 * 10) / 10} MiB`;
}
