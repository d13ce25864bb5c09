/** Finds image backends on their known ports, by the shape of their answers: the ports are shared with other programs. */
import { type Ask, probeAll, type ProbeOptions } from "../http/probe.ts";
import type { BackendKind } from "./backend_profiles.ts";
import { asObject } from "../json/type_guards.ts";

/** A backend that was found. */
export interface DiscoveredBackend {
  kind: BackendKind;
  baseUrl: string;
  /** Why it cannot be used as it is: its API is switched off, or it wants a login. */
  hint?: "api_off" | "login";
}

/** Default ports of A1111 and ComfyUI. */
const PORTS = [{ port: 7860 }, { port: 8188 }];

/** Asks all hosts on both ports for both kinds. */
export async function discoverBackends(
  options: Omit<ProbeOptions<object>, "ports"> & { ports?: readonly { port: number }[] },
): Promise<DiscoveredBackend[]> {
  return await probeAll({ ...options, ports: options.ports ?? PORTS }, async (origin, _port, ask) => {
    const [comfy, a1111] = await Promise.all([isComfy(ask), findA1111(ask)]);
    if (comfy) return { kind: "comfyui" as const, baseUrl: origin };
    return a1111 === undefined ? undefined : { kind: "a1111" as const, baseUrl: origin, ...a1111 };
  });
}

async function isComfy(ask: Ask): Promise<boolean> {
  const stats = await ask("/system_stats");
  const { system, devices } = asObject(stats?.json);
  if (stats?.status === 200 && typeof system === "object" && Array.isArray(devices)) return true;
  const queue = await ask("/prompt");
  return queue?.status === 200 && typeof asObject(asObject(queue.json).exec_info).queue_remaining === "number";
}

/** 7860 is every Gradio app's port: a page there is nothing. */
async function findA1111(ask: Ask): Promise<Pick<DiscoveredBackend, "hint"> | undefined> {
  const models = await ask("/sdapi/v1/sd-models");
  if (models === undefined) return undefined;
  if (models.status === 200 && Array.isArray(models.json)) {
    if (models.json.length > 0) return models.json.every((entry) => typeof entry?.title === "string") ? {} : undefined;
    const options = await ask("/sdapi/v1/options");
    return "sd_model_checkpoint" in asObject(options?.json) ? {} : undefined;
  }
  const isLogin = models.status === 401 && /^basic/i.test(models.headers.get("www-authenticate") ?? "");
  if (!isLogin && models.status !== 404) return undefined;
  // Needs no login, and is there without the API.
  const ping = await ask("/internal/ping");
  if (ping?.status !== 200 || ping.text.trim() !== "{}") return undefined;
  return { hint: isLogin ? "login" : "api_off" };
}
