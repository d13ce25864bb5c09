/** Detects image backends, on their default ports or at an address, by the shape of their responses, because other programs use these ports, too. */
import { normalizeBaseUrl } from "../http/base_url.ts";
import type { ResolveHost } from "../http/guard/target_policy.ts";
import { type Probe, probeAddress, probeAll, type ProbeOptions } from "../http/http_client.ts";
import { asObject } from "../json/type_guards.ts";
import type { BackendKind } from "./backend_profiles.ts";

/** A detected backend. */
export interface DetectedBackend {
  kind: BackendKind;
  baseUrl: string;
  /** Why it can't be used yet: its API is off, or it requires a login. */
  hint?: "api_off" | "login";
}

/** The default ports of A1111 and ComfyUI. */
const PORTS = [{ port: 7860 }, { port: 8188 }];

/** Probes all hosts for both kinds on both ports. */
export async function detectBackends(
  options: Omit<ProbeOptions<object>, "ports"> & { ports?: readonly { port: number }[] },
): Promise<DetectedBackend[]> {
  return await probeAll({ ...options, ports: options.ports ?? PORTS }, async (origin, _port, probe) => {
    const found = await detectKind(probe);
    return found && { ...found, baseUrl: origin };
  });
}

/** What an address answers as. Without a kind, the server is away or of neither kind. */
export type AddressDetection = Partial<Omit<DetectedBackend, "baseUrl">> & { isReachable: boolean };

/** For one request. A server on the other side of a tunnel needs longer than one on this machine. */
const ADDRESS_DEADLINE_MS = 5_000;

/**
 * Detects the kind of the server at an address that the owner entered. No credentials are sent.
 *
 * @throws {AppError} `invalid_request`, `address_not_allowed`
 */
export async function detectBackendAt(
  address: string,
  { deadlineMs = ADDRESS_DEADLINE_MS, resolve }: { deadlineMs?: number; resolve?: ResolveHost } = {},
): Promise<AddressDetection> {
  const baseUrl = normalizeBaseUrl(address);
  return await probeAddress({ baseUrl, deadlineMs, resolve }, async (probe) => {
    let isReachable = false;
    const found = await detectKind(async (path) => {
      const response = await probe(path);
      isReachable ||= response !== undefined;
      return response;
    });
    return { isReachable, ...found };
  });
}

async function detectKind(probe: Probe): Promise<Omit<DetectedBackend, "baseUrl"> | undefined> {
  const [isComfy, a1111] = await Promise.all([isComfyUi(probe), detectA1111(probe)]);
  if (isComfy) return { kind: "comfyui" };
  return a1111 && { kind: "a1111", ...a1111 };
}

async function isComfyUi(probe: Probe): Promise<boolean> {
  const stats = await probe("/system_stats");
  const { system, devices } = asObject(stats?.json);
  if (stats?.status === 200 && typeof system === "object" && Array.isArray(devices)) return true;
  const queue = await probe("/prompt");
  return queue?.status === 200 && typeof asObject(asObject(queue.json).exec_info).queue_remaining === "number";
}

/** Every Gradio app uses port 7860, so a web page is not enough. */
async function detectA1111(probe: Probe): Promise<Pick<DetectedBackend, "hint"> | undefined> {
  const models = await probe("/sdapi/v1/sd-models");
  if (models === undefined) return undefined;
  if (models.status === 200 && Array.isArray(models.json)) {
    if (models.json.length > 0) return models.json.every((entry) => typeof entry?.title === "string") ? {} : undefined;
    const options = await probe("/sdapi/v1/options");
    return "sd_model_checkpoint" in asObject(options?.json) ? {} : undefined;
  }
  const isLogin = models.status === 401 && /^basic/i.test(models.headers.get("www-authenticate") ?? "");
  if (!isLogin && models.status !== 404) return undefined;
  // This path needs no login and exists even if the API is off.
  const ping = await probe("/internal/ping");
  if (ping?.status !== 200 || ping.text.trim() !== "{}") return undefined;
  return { hint: isLogin ? "login" : "api_off" };
}
