/** Opens image generation: backend profiles, workflows, the generator, its jobs and portraits of characters. */
import type { Attachments } from "../attachments/attachments.ts";
import type { ImagePool } from "../attachments/images/image_pool.ts";
import type { Card } from "../characters/card/card.ts";
import type { PortraitGenerator } from "../characters/generation/character_generator.ts";
import type { PurposeSealer } from "../crypto/sealer.ts";
import { AppError } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import { openHttpClient } from "../http/http_client.ts";
import type { OwnListeners } from "../http/own_listeners.ts";
import type { JobRunner } from "../jobs/job_runner.ts";
import type { Log } from "../log.ts";
import type { DataDir } from "../storage/data_dir.ts";
import type { Database, Statement } from "../storage/database/database.ts";
import type { Versions } from "../storage/versions.ts";
import type { BackendLimits } from "./backend.ts";
import { BackendProfiles } from "./backend_profiles.ts";
import { Workflows, type WorkflowTrash } from "./comfyui/workflows.ts";
import { ImageGenerator } from "./image_generator.ts";
import { ImageGallery, type ImageGalleryDeps } from "./image_gallery.ts";
import { ImageJobs, type MessageImages } from "./image_jobs.ts";

/** The services of image generation. */
export interface ImageGeneration {
  profiles: BackendProfiles;
  workflows: Workflows;
  generator: ImageGenerator;
  imageJobs: ImageJobs;
  gallery: ImageGallery;
}

/** The dependencies of image generation. */
export interface ImageGenerationDeps {
  db: Database;
  /** For the purpose "images". */
  sealer: PurposeSealer;
  events: EventHub;
  jobs: JobRunner;
  dataDir: Pick<DataDir, "ensureFolder">;
  trash: WorkflowTrash & {
    register(kind: string, handler: {
      restore(record: unknown, removal: Statement): Promise<void>;
      purge(record: unknown, removal: Statement): Promise<void>;
    }): void;
  };
  versions: Versions;
  attachments: Pick<Attachments, "storeInline" | "getImage" | "readAll">;
  avatars: { read(id: string): Promise<Uint8Array> };
  messages: MessageImages & ImageGalleryDeps["messages"];
  ask: PortraitDeps["ask"];
  imagePool: Pick<ImagePool, "toPng" | "toJpeg">;
  log: Log;
  now(): number;
  limits?: Partial<BackendLimits>;
  damageReports: { report(path: string): void };
  ownListeners?: OwnListeners;
}

/** Opens image generation. No backend is contacted until an image is requested. */
export async function openImageGeneration(
  deps: ImageGenerationDeps,
): Promise<{ images: ImageGeneration; painter: PortraitGenerator; close(): Promise<void> }> {
  const {
    db,
    sealer,
    events,
    jobs,
    trash,
    versions,
    attachments,
    avatars,
    messages,
    ask,
    imagePool,
    log,
    now,
    limits,
    damageReports,
    ownListeners,
  } = deps;
  const client = openHttpClient({ ownListeners });
  const profiles = await BackendProfiles.open({ db, sealer, events, log, now });
  const folder = await deps.dataDir.ensureFolder("workflows");
  const workflows = new Workflows({ db, trash, versions, events, folder, damageReports });
  trash.register("workflow", workflows);
  const generator = new ImageGenerator({
    profiles,
    workflows,
    client,
    limits,
    readImage: (name) => attachments.readAll(name),
    readCharacterImage: (id) => avatars.read(id).catch(ignoreNotFound),
  });
  const gallery = new ImageGallery({
    db,
    sealer,
    events,
    log,
    now,
    messages,
    readImage: (name) => attachments.readAll(name),
    toJpeg: (bytes, jpeg) => imagePool.toJpeg(bytes, jpeg),
  });
  const imageJobs = new ImageJobs({ jobs, profiles, generator, gallery, attachments, messages, now });
  return {
    images: { profiles, workflows, generator, imageJobs, gallery },
    painter: createPortraitGenerator({ profiles, generator, ask, imagePool }),
    async close() {
      // First, while backends can still be stopped. Queued jobs resume at the next start.
      await jobs.close();
      client.close();
    },
  };
}

function ignoreNotFound(error: unknown): undefined {
  if (!(error instanceof AppError) || error.code !== "not_found") throw error;
  return undefined;
}

/** Messages in OpenAI's format. */
type PromptMessages = { role: string; content: string }[];

/** The dependencies of the portrait generator. */
interface PortraitDeps {
  profiles: BackendProfiles;
  generator: ImageGenerator;
  /** Asks a language model. Returns `undefined` if no suitable model is available. */
  ask(messages: PromptMessages, signal: AbortSignal): Promise<string | undefined>;
  /** Converts images in a worker. */
  imagePool: {
    toPng(bytes: Uint8Array, options: { maxPx: number; mustBeComplete: boolean }): Promise<Uint8Array<ArrayBuffer>>;
  };
}

/** Portrait format, unless the profile sets a size. */
const SIZE = { widthPx: 512, heightPx: 768 };
/** Longer side of a portrait, because the card contains the whole image. */
const MAX_PX = 1024;

/** Creates the portrait generator. */
function createPortraitGenerator({ profiles, generator, ask, imagePool }: PortraitDeps): PortraitGenerator {
  return async ({ characterId, card, signal, onProgress }) => {
    const profile = profiles.getActive();
    const prompt = createPortraitPrompt(card, await ask(createPromptRequest(card), signal));
    const size = profile.defaults.widthPx === undefined && profile.defaults.heightPx === undefined ? SIZE : {};
    const { images } = await generator.generate(profile.id, { prompt, characterId, ...size }, {
      signal,
      onProgress: ({ share }) => onProgress(share),
      wantsPreview: () => false,
    });
    // Encoding the image again removes metadata such as the whole prompt, which must not end up in a shared card.
    return await imagePool.toPng(images[0]!, { maxPx: MAX_PX, mustBeComplete: true });
  };
}

const INSTRUCTION =
  "You write prompts for an image generator. Below is the description of a fictional character. Write one prompt for a " +
  "portrait of this character: what can be seen, as short phrases separated by commas, in English, at most 60 words. Begin " +
  "with the kind of person or creature, then face, hair, eyes, clothes, mood, place. Only what is visible: no name, no " +
  "story, no explanation, no quotation marks. Answer with the prompt alone.";
/** Maximum number of characters per field. Cards describe appearance first, and small models have small contexts. */
const MAX_FIELD = 3_000;
const MAX_PROMPT = 1_000;
const FRAMING = "portrait, upper body, looking at viewer, detailed";

/** Creates the request for a prompt. */
function createPromptRequest({ data }: Card): PromptMessages {
  const fields = [
    ["Name", data.name],
    ["Description", data.description],
    ["Personality", data.personality],
    ["Scenario", data.scenario],
  ] as const;
  const lines = fields.map(([label, text]) => [label, replaceNames(text, data.name).slice(0, MAX_FIELD).trim()])
    .filter(([, text]) => text !== "")
    .map(([label, text]) => `${label}: ${text}`);
  return [{ role: "system", content: INSTRUCTION }, { role: "user", content: lines.join("\n\n") }];
}

/** Creates the image prompt from the model's reply, or from the card if there is none. */
function createPortraitPrompt({ data }: Card, reply: string | undefined): string {
  const text = reply === undefined ? replaceNames(data.description, data.name) || data.name : extractPrompt(reply);
  return `${text.replace(/\s+/g, " ").trim().slice(0, MAX_PROMPT)}, ${FRAMING}`;
}

/** Extracts the prompt from a reply. Some models add an introduction, a label or quotation marks. */
function extractPrompt(reply: string): string {
  const lines = reply.split(/\r?\n/).map((line) => line.trim()).filter((line) => line !== "" && !line.endsWith(":"));
  const text = lines.join(" ").replace(/^(?:[*_#\s]*(?:image\s+)?prompt[*_\s]*:[*_\s]*)/i, "");
  return text.replace(/^["'`“”„*\s]+|["'`“”„*\s]+$/g, "") || reply;
}

function replaceNames(text: string, name: string): string {
  return text.replaceAll(/\{\{char\}\}/gi, name).replaceAll(/\{\{user\}\}/gi, "the user");
}
