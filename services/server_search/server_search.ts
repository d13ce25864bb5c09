/**
 * The search for servers: all kinds look together, so that each server is offered for what it does and a speech server
 * isn't taken for a model server.
 */
import type { OwnListeners } from "../http/own_listeners.ts";
import { detectBackends, type DetectedBackend } from "../image_generation/backend.ts";
import { type DetectedServer, type DetectionOptions, detectServers } from "../llm/connections/server_detection.ts";
import {
  type DetectedSpeechServer,
  detectSpeechServers,
  type SpeechDetectionOptions,
} from "../speech/speech_detection.ts";
import { type DetectedTranscriptionServer, detectTranscriptionServers } from "../transcription/transcription_server.ts";

/** The servers by what they're for. A server may be in several lists. */
export interface FoundServers {
  models: DetectedServer[];
  speech: DetectedSpeechServer[];
  transcription: DetectedTranscriptionServer[];
  images: DetectedBackend[];
}

/** Where to search. Tests use other ports. */
export interface ServerSearchOptions {
  hosts: readonly string[];
  ownListeners?: OwnListeners;
  deadlineMs?: number;
  modelPorts?: DetectionOptions["ports"];
  speechPorts?: SpeechDetectionOptions["ports"];
  otherPorts?: readonly { port: number }[];
}

/** Searches all hosts for servers of all kinds at once. */
export async function findServers(options: ServerSearchOptions): Promise<FoundServers> {
  const { modelPorts, speechPorts, otherPorts, ...shared } = options;
  const [models, speech, transcription, images] = await Promise.all([
    detectServers({ ...shared, ports: modelPorts }),
    detectSpeechServers({ ...shared, ports: speechPorts }),
    detectTranscriptionServers({ ...shared, ports: otherPorts }),
    detectBackends({ ...shared, ports: otherPorts }),
  ]);
  return {
    models: models.filter((server) => !isForSpeech(server, speech, transcription)),
    speech: speech.filter((server) =>
      !server.needsKey || !models.some((model) => isSame(model, server) && isKnown(model))
    ),
    transcription,
    images,
  };
}

/** A server of unknown software that lists voices speaks, and one whose models all speak or transcribe has no other. */
function isForSpeech(
  server: DetectedServer,
  speech: DetectedSpeechServer[],
  transcription: DetectedTranscriptionServer[],
): boolean {
  if (isKnown(server)) return false;
  const speaking = speech.find((one) => isSame(one, server));
  if (speaking !== undefined && (speaking.voices > 0 || speaking.needsKey)) return true;
  const transcribing = transcription.find((one) => isSame(one, server));
  const others = [...speaking?.models ?? [], ...transcribing?.models ?? []];
  return others.length > 0 && server.models.every((model) => others.includes(model));
}

function isKnown({ software }: { software: string }): boolean {
  return software !== "OpenAI-compatible";
}

function isSame(a: { baseUrl: string }, b: { baseUrl: string }): boolean {
  return new URL(a.baseUrl).origin === new URL(b.baseUrl).origin;
}
