/** Finds model servers on known ports in under two seconds, without credentials (docs/protocols/llm.md#discovery). */
import { type Ask, probeAll, type ProbeOptions } from "../../http/probe.ts";
import { PROBE_PLANS, type ServerFind } from "./server_detection.ts";

/** A server that was found. */
export interface DiscoveredServer {
  baseUrl: string;
  kind: "openai";
  /** Its name as people know it: `"llama.cpp"`, `"Ollama"`. */
  software: string;
  models: string[];
  /** It answered that a key is missing. */
  needsKey?: boolean;
  /** It is still loading its model. */
  isStarting?: boolean;
}

/** A port and whose habits to expect there. */
interface KnownPort {
  as: number;
}

/** What is probed; the documented ports unless a test gives others. A port takes at most two requests. */
export type DiscoverOptions =
  & Omit<ProbeOptions<KnownPort>, "ports">
  & Partial<Pick<ProbeOptions<KnownPort>, "ports">>;

/** Probes all hosts and ports at once. */
export async function discoverServers(options: DiscoverOptions): Promise<DiscoveredServer[]> {
  const ports = options.ports ?? Object.keys(PROBE_PLANS).map((port) => ({ port: Number(port), as: Number(port) }));
  return await probeAll({ ...options, ports }, async (origin, { as }, ask) => {
    const find = await findOut(as, ask);
    if (find === undefined) return undefined;
    return {
      baseUrl: `${origin}/v1`,
      kind: "openai" as const,
      software: find.software,
      models: find.models ?? [],
      ...(find.needsKey && { needsKey: true }),
      ...(find.isStarting && { isStarting: true }),
    };
  });
}

async function findOut(as: number, ask: Ask): Promise<ServerFind | undefined> {
  const plan = PROBE_PLANS[as];
  if (plan === undefined) throw new Error(`No server is known to use port ${as}`);
  const first = await ask(plan.first);
  const step = first === undefined ? undefined : plan.judge(first);
  if (step === undefined || "software" in step) return step;
  return step.judge(await ask(step.path));
}
