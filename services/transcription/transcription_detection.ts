/**
 * Detects transcription servers on their default ports by the shape of their responses: model servers use these ports, too.
 *
 * @see docs/protocols/stt.md, "Discovery"
 */
import { type Probe, probeAll, type ProbeOptions } from "../http/probe.ts";
import { asArray, asObject, isNonEmptyString } from "../json/type_guards.ts";
import { TRANSCRIPTION_MODEL } from "./transcription_server.ts";

/** A detected server. */
export interface DetectedTranscriptionServer {
  baseUrl: string;
  /** Product name: `"Speaches"`, `"whisper.cpp"`. */
  software: string;
  /** Models that transcribe. */
  models: string[];
}

/** The default ports of Speaches and others, LocalAI and whisper.cpp, KoboldCpp, and what guides suggest beside a model server. */
const PORTS = [8000, 8080, 5001, 8001, 8081, 9000].map((port) => ({ port }));
const UNKNOWN = "OpenAI-compatible";

/** Probes all hosts and ports at once. */
export async function detectTranscriptionServers(
  options: Omit<ProbeOptions<object>, "ports"> & { ports?: readonly { port: number }[] },
): Promise<DetectedTranscriptionServer[]> {
  return await probeAll({ ...options, ports: options.ports ?? PORTS }, async (origin, _port, probe) => {
    const kobold = asObject((await probe("/api/extra/version"))?.json);
    if (kobold.result === "KoboldCpp") {
      // It lists only its language model. Any name selects the Whisper model.
      return kobold.transcribe === true ? { baseUrl: `${origin}/v1`, software: "KoboldCpp", models: [] } : undefined;
    }
    return await detectByModels(origin, probe) ?? await detectWhisperCpp(origin, probe);
  });
}

async function detectByModels(origin: string, probe: Probe): Promise<DetectedTranscriptionServer | undefined> {
  const response = await probe("/v1/models");
  if (response?.status !== 200) return undefined;
  const listed = asArray(asObject(response.json).data).map(asObject);
  // Speaches names the task of each model.
  const isSpeaches = listed.some((model) => isNonEmptyString(model.task));
  const models = listed
    .filter(({ id, task }) =>
      isSpeaches ? task === "automatic-speech-recognition" : TRANSCRIPTION_MODEL.test(String(id))
    )
    .map(({ id }) => id)
    .filter(isNonEmptyString);
  const baseUrl = `${origin}/v1`;
  if (isSpeaches) return { baseUrl, software: "Speaches", models };
  if (models.length === 0) return undefined;
  const localAi = await probe("/.well-known/localai.json");
  const isLocalAi = localAi?.status === 200 && typeof localAi.json === "object" && localAi.json !== null;
  return { baseUrl, software: isLocalAi ? "LocalAI" : UNKNOWN, models };
}

/** It has no list of models. Its header names it; behind a proxy, its page does. */
async function detectWhisperCpp(origin: string, probe: Probe): Promise<DetectedTranscriptionServer | undefined> {
  const page = await probe("/");
  if (page === undefined) return undefined;
  const isNamed = page.headers.get("server") === "whisper.cpp" || /<title>Whisper\.cpp Server/i.test(page.text);
  return isNamed ? { baseUrl: origin, software: "whisper.cpp", models: [] } : undefined;
}
