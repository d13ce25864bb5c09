/**
 * Generates characters from an idea or an image, as a stream or in a job that stores the card, and their portraits in
 * jobs.
 */
import { Buffer } from "node:buffer";
import type { Attachments } from "../../attachments/attachments.ts";
import type { ImagePool } from "../../attachments/images/image_pool.ts";
import { type Card, parseCard } from "../card/card.ts";
import { toReadCard } from "../card/card_codec.ts";
import type { Characters } from "../characters.ts";
import type { ModelRouter } from "../../llm/model_router.ts";
import { createUuidV7 } from "../../crypto/random.ts";
import { AppError, ignoreErrors } from "../../errors.ts";
import type { JobContext, JobError, JobRunner, JobSnapshot, JobState } from "../../jobs/job_runner.ts";
import {
  type CharacterFields,
  type CharacterIdea,
  type CharacterStream,
  type FieldUpdate,
  openCharacterStream,
} from "./character_writing.ts";

/** What to generate. */
interface GenerationRequest {
  idea: string;
  /** Name of an attachment. */
  picture?: string;
  /** Name of the language in that language; by default the language of the idea. */
  language?: string;
}

/** Job detail. */
interface GenerationDetail {
  /** Set once the card is stored. */
  character_id?: string;
  name?: string;
  /** True if the model's output was cut off. */
  is_cut?: boolean;
}

/** Dependencies of `CharacterGenerator`. */
interface CharacterGeneratorDeps {
  jobs: JobRunner;
  models: ModelRouter;
  characters: Pick<Characters, "get" | "put" | "setAvatar">;
  attachments: Pick<Attachments, "getImage" | "readAll">;
  images: Pick<ImagePool, "toJpeg">;
}

interface GenerationParams extends GenerationRequest {
  /** Id of the new character, so that a resumed job doesn't create a second one. */
  id: string;
  isPortrait: boolean;
}

const CHARACTER_KIND = "character";
const MAX_TITLE = 80;
const FROM_IMAGE = "Character from an image";
/** Maximum length of the longer side of an image sent to the model, in pixels. */
const SENT_PX = 1568;

/** Generates characters. */
export class CharacterGenerator {
  readonly #deps: CharacterGeneratorDeps;

  constructor(deps: CharacterGeneratorDeps) {
    this.#deps = deps;
    // Resumable: the character is still wanted, and an interrupted model can't continue.
    deps.jobs.register(CHARACTER_KIND, { parallel: 1, resumable: true, run: (context) => this.#run(context) });
  }

  /**
   * Starts generating without storing anything. Aborting `signal` stops the model.
   *
   * @throws {AppError} `not_found` for an unknown image, and like `openCharacterStream`
   */
  async write(request: GenerationRequest, signal: AbortSignal): Promise<CharacterStream> {
    return await openCharacterStream(this.#deps.models, await this.#toIdea(request), signal);
  }

  /**
   * Starts a job that stores the character. The job's `detail` contains its id.
   *
   * @param isPortrait True if the image becomes the character's portrait.
   * @throws {AppError} `not_found` for an unknown image
   */
  async start(request: GenerationRequest, isPortrait: boolean): Promise<JobSnapshot> {
    if (request.picture !== undefined) this.#deps.attachments.getImage(request.picture);
    const params: GenerationParams = { ...request, isPortrait, id: createUuidV7() };
    const title = request.idea.trim().replace(/\s+/g, " ").slice(0, MAX_TITLE) || FROM_IMAGE;
    return await this.#deps.jobs.start(CHARACTER_KIND, { title, params });
  }

  async #run(context: JobContext): Promise<void> {
    const params = context.params as GenerationParams;
    const stored = await this.#deps.characters.get(params.id).catch(ignoreErrors("not_found"));
    if (stored !== undefined) return reportCharacter(context, params.id, stored.character.card, false);
    const writing = await this.write(params, context.signal);
    const fields: CharacterFields = {};
    let isCut: boolean;
    try {
      isCut = await collectFields(writing, fields, context);
    } catch (error) {
      // Keeps partial output, unless the job was canceled or will run again. A name alone may be incomplete.
      if (!context.signal.aborted && Object.keys(fields).length > 1) await this.#store(context, params, fields, true);
      throw error;
    }
    await context.startVerifying();
    await this.#store(context, params, fields, isCut);
  }

  async #store(
    context: JobContext,
    { id, picture, isPortrait }: GenerationParams,
    fields: CharacterFields,
    isCut: boolean,
  ): Promise<void> {
    const { characters, attachments } = this.#deps;
    const card = toGeneratedCard(fields);
    await characters.put(id, toReadCard(card));
    reportCharacter(context, id, card, isCut);
    if (picture !== undefined && isPortrait) await characters.setAvatar(id, await attachments.readAll(picture));
  }

  async #toIdea({ idea, picture, language }: GenerationRequest): Promise<CharacterIdea> {
    if (picture === undefined) return { idea, language };
    const { attachments, images } = this.#deps;
    const jpeg = await images.toJpeg(await attachments.readAll(picture), { maxPx: SENT_PX });
    const pictureUrl = `data:image/jpeg;base64,${Buffer.from(jpeg.buffer).toString("base64")}`;
    return { idea, language, imageUrl: pictureUrl };
  }
}

/** Collects the generated fields. @returns Whether the output was cut off. */
async function collectFields(writing: CharacterStream, fields: CharacterFields, context: JobContext): Promise<boolean> {
  const steps = writing.streamUpdates();
  for (;;) {
    const { done, value } = await steps.next();
    if (done) return value.isCut;
    for (const step of value) applyUpdate(fields, step);
    const length = Object.values(fields).reduce((sum, text) => sum + text.length, 0);
    if (length > 0) context.progress({ done: length, total: null, unit: "letters" });
    if (fields.name !== undefined) context.detail({ name: fields.name } satisfies GenerationDetail);
  }
}

function applyUpdate(fields: Record<string, unknown>, step: FieldUpdate): void {
  fields[step.field] = "append" in step ? `${fields[step.field] ?? ""}${step.append}` : step.value;
}

function reportCharacter(context: JobContext, id: string, { data }: Card, isCut: boolean): void {
  context.detail(
    { character_id: id, name: data.name, ...(isCut && { is_cut: true }) } satisfies GenerationDetail,
  );
}

/** Name of cards for which the model wrote none. */
const NAMELESS = "Unnamed";

/** Creates a card. Examples get a `<START>` line if they have none. */
function toGeneratedCard(fields: CharacterFields): Card {
  const { name, tags, mes_example: examples = "", ...texts } = fields;
  const hasMarks = examples.trim() === "" || /<START>/i.test(examples);
  return parseCard({
    spec: "chara_card_v3",
    spec_version: "3.0",
    data: {
      ...texts,
      name: name?.trim() || NAMELESS,
      mes_example: hasMarks ? examples : `<START>\n${examples}`,
      tags: tags ?? [],
    },
  });
}

/** Generates an image of a character; implemented by image generation. */
export type PortraitGenerator = (request: {
  characterId: string;
  card: Card;
  signal: AbortSignal;
  /** @param share 0 to 1. */
  onProgress(share: number): void;
}) => Promise<Uint8Array>;

/** State of a character's portrait. */
interface PortraitStatus {
  state: "none" | "pending" | "running" | "done" | "failed";
  /** 0 to 1, if known. */
  progress?: number;
  error?: JobError;
  started_at?: string;
  finished_at?: string;
}

const PORTRAIT_KIND = "portrait";
const HUNDRED = 100;

const STATES: Record<JobState, PortraitStatus["state"]> = {
  queued: "pending",
  running: "running",
  verifying: "running",
  done: "done",
  failed: "failed",
  cancelled: "failed",
};

/** Starts and reports portrait jobs. */
export class Portraits {
  readonly #jobs: JobRunner;
  readonly #characters: Characters;

  constructor(options: { jobs: JobRunner; characters: Characters; painter: PortraitGenerator }) {
    const { jobs, characters, painter } = options;
    this.#jobs = jobs;
    this.#characters = characters;
    // Resumable: the portrait is still wanted, and the image of an ended process can't be fetched.
    jobs.register(PORTRAIT_KIND, {
      parallel: 1,
      resumable: true,
      run: (context) => generatePortrait(context, characters, painter),
    });
  }

  /**
   * Starts a portrait job. Returns the running job, if there is one.
   *
   * @throws {AppError} `not_found`, `conflict` for a read-only card
   */
  async start(id: string): Promise<JobSnapshot> {
    const { character } = await this.#characters.get(id);
    if (character.external) {
      throw new AppError("conflict", `Character "${id}" belongs to another program's folder and is read-only`);
    }
    return await this.#jobs.start(PORTRAIT_KIND, { title: character.name, params: { id }, key: id });
  }

  /** Returns the state of the last portrait. @throws {AppError} `not_found` */
  async getStatus(id: string): Promise<PortraitStatus> {
    await this.#characters.get(id);
    const job = this.#jobs.list().find(({ kind, key }) => kind === PORTRAIT_KIND && key === id);
    if (job === undefined) return { state: "none" };
    const { state, progress, createdAtMs, updatedAtMs } = job;
    const error = state === "cancelled"
      ? { code: "interrupted" as const, message: "The portrait was canceled" }
      : job.error;
    return {
      state: STATES[state],
      progress: progress?.total ? progress.done / progress.total : undefined,
      error,
      started_at: new Date(createdAtMs).toISOString(),
      finished_at: state === "done" || STATES[state] === "failed" ? new Date(updatedAtMs).toISOString() : undefined,
    };
  }
}

async function generatePortrait(
  context: JobContext,
  characters: Characters,
  painter: PortraitGenerator,
): Promise<void> {
  const { id } = context.params as { id: string };
  const { character } = await characters.get(id);
  context.signal.throwIfAborted();
  const image = await painter({
    characterId: id,
    card: character.card,
    signal: context.signal,
    onProgress: (share) => context.progress({ done: Math.round(share * HUNDRED), total: HUNDRED, unit: "percent" }),
  });
  await context.startVerifying();
  await characters.setAvatar(id, image, { cause: "portrait" });
}
