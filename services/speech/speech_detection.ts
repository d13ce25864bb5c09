/**
 * Detects speech servers on their default ports by the structure of their responses: model servers use these ports, too
 * (docs/protocols/tts.md, "Models and voices").
 */
import { getServerRoot, normalizeBaseUrl } from "../http/base_url.ts";
import type { ResolveHost } from "../http/guard/target_policy.ts";
import { type Probe, probeAddress, probeAll, type ProbeOptions, type ProbeResponse } from "../http/http_client.ts";
import type { OwnListeners } from "../http/own_listeners.ts";
import { asArray, asObject, isNonEmptyString } from "../json/type_guards.ts";
import { SPEAKING_MODEL } from "./speech_server.ts";
import { parseVoiceList } from "./voice_lists.ts";

/** A detected server. */
export interface DetectedSpeechServer {
  baseUrl: string;
  /** Product name: `"Kokoro-FastAPI"`, `"Speaches"`. */
  software: string;
  /** Models that speak. Empty if it lists none. */
  models: string[];
  /** Number of listed voices. */
  voices: number;
  /** True if it rejected the request without a key. */
  needsKey?: boolean;
}

/** Ports that only speech servers have by default: Kokoro, Chatterbox-TTS-Server, chatterbox-tts-api, Orpheus. */
const OWN_PORTS = [8880, 8004, 4123, 5005];
/** Those that mlx-audio, Speaches and others, LocalAI and KoboldCpp share with model servers. */
const SHARED_PORTS = [8000, 8001, 8080, 5001];
const UNKNOWN = "OpenAI-compatible";

/** A port, and whether only speech servers use it. */
interface SpeechPort {
  isOwn: boolean;
}

/** What to probe. Tests use other ports. */
export type SpeechDetectionOptions =
  & Omit<ProbeOptions<SpeechPort>, "ports" | "otherPort">
  & Partial<Pick<ProbeOptions<SpeechPort>, "ports">>;

const PORTS = [
  ...OWN_PORTS.map((port) => ({ port, isOwn: true })),
  ...SHARED_PORTS.map((port) => ({ port, isOwn: false })),
];

/** Probes all hosts and ports at once. Known software is first. */
export async function detectSpeechServers(options: SpeechDetectionOptions): Promise<DetectedSpeechServer[]> {
  const ports = options.ports ?? PORTS;
  const servers = await probeAll(
    { ...options, ports, otherPort: { isOwn: false } },
    async (origin, { isOwn }, probe) => {
      const found = await detectAt(probe, isOwn);
      return found && { baseUrl: `${origin}/v1`, ...found };
    },
  );
  return servers.toSorted((a, b) => Number(a.software === UNKNOWN) - Number(b.software === UNKNOWN));
}

/** Time limit per request. A server behind a tunnel needs longer than one on this machine. */
const ADDRESS_DEADLINE_MS = 5_000;

/**
 * Detects the speech server at an address that the owner entered. No credentials are sent.
 *
 * @returns No server if it's another program.
 * @throws {AppError} `invalid_request`, `address_not_allowed`
 */
export async function detectSpeechServerAt(
  address: string,
  policy: { resolve?: ResolveHost; ownListeners?: OwnListeners } = {},
): Promise<{ isReachable: boolean; server?: DetectedSpeechServer }> {
  const baseUrl = normalizeBaseUrl(address);
  const root = getServerRoot(baseUrl);
  return await probeAddress({ ...policy, baseUrl: root, deadlineMs: ADDRESS_DEADLINE_MS }, async (probe) => {
    let isReachable = false;
    const found = await detectAt(async (path) => {
      const response = await probe(path);
      isReachable ||= response !== undefined;
      return response;
    }, true);
    return { isReachable, ...(found && { server: { baseUrl, ...found } }) };
  });
}

async function detectAt(probe: Probe, isOwn: boolean): Promise<Omit<DetectedSpeechServer, "baseUrl"> | undefined> {
  const listed = await probe("/v1/models");
  if (listed === undefined) return undefined;
  if (listed.status === 401 || listed.status === 403) {
    const isApi = "error" in asObject(listed.json) || "detail" in asObject(listed.json);
    return isOwn && isApi ? { software: UNKNOWN, models: [], voices: 0, needsKey: true } : undefined;
  }
  const kobold = asObject((await probe("/api/extra/version"))?.json);
  if (kobold.result === "KoboldCpp") {
    return kobold.tts === true ? { software: "KoboldCpp", models: [], voices: 0 } : undefined;
  }
  const entries = asArray(asObject(listed.json).data).map(asObject);
  if (entries.some(({ task }) => isNonEmptyString(task))) {
    const models = entries.filter(({ task }) => task === "text-to-speech").map(({ id }) => id).filter(isNonEmptyString);
    return models.length > 0 ? { software: "Speaches", models, voices: 0 } : undefined;
  }
  const [ofSpeech, ofServer] = await Promise.all([probe("/v1/audio/voices"), probe("/v1/voices")]);
  const voices = [ofSpeech, ofServer].map(readVoices).find((ids) => ids !== undefined);
  const ids = new Set(entries.map(({ id }) => id).filter(isNonEmptyString));
  const models = [...ids].filter((id) => SPEAKING_MODEL.test(id));
  if (voices === undefined && models.length === 0) return undefined;
  const isKokoro = entries.some(({ owned_by }) => owned_by === "kokoro");
  const software = isKokoro ? "Kokoro-FastAPI" : await identify(probe, voices ?? []);
  return { software, models, voices: voices?.length ?? 0 };
}

function readVoices(response: ProbeResponse | undefined): string[] | undefined {
  return response?.status === 200 ? parseVoiceList(response.json)?.map(({ id }) => id) : undefined;
}

/** Identifies the product by an endpoint that only one has, or by its voices. */
async function identify(probe: Probe, voices: string[]): Promise<string> {
  if (voices.includes("tara") && voices.includes("leah")) return "Orpheus-FastAPI";
  const [localAi, chatterbox, ping, root] = await Promise.all(
    ["/.well-known/localai.json", "/api/model-info", "/ping", "/"].map(async (path) => {
      const response = await probe(path);
      return response?.status === 200 ? asObject(response.json) : {};
    }),
  );
  if (Object.keys(localAi!).length > 0 && !("error" in localAi!)) return "LocalAI";
  if (Object.keys(chatterbox!).length > 0 && !("error" in chatterbox!)) return "Chatterbox-TTS-Server";
  if (ping!.status === "ok") return "chatterbox-tts-api";
  return /mlx.?audio/i.test(String(root!.message)) ? "mlx-audio" : UNKNOWN;
}
