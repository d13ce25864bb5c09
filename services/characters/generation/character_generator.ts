/** Characters that a model writes from an idea or a picture: before the reader's eyes, or in a job that ends in a stored card. */
import { Buffer } from "node:buffer";
import type { Attachments } from "../../attachments/attachments.ts";
import type { ImagePool } from "../../attachments/images/image_pool.ts";
import { type Card, cardOf } from "../card/card.ts";
import type { Characters } from "../characters.ts";
import type { ModelRouter } from "../../llm/model_router.ts";
import { uuidV7 } from "../../crypto/random.ts";
import { noneOn } from "../../errors.ts";
import type { JobContext, JobRunner, JobSnapshot } from "../../jobs/job_runner.ts";
import type { CharacterFields } from "./character_fields.ts";
import type { CharacterIdea } from "./character_prompt.ts";
import { openWriting, type Writing, type WritingStep } from "./character_writing.ts";

/** What somebody wants written. */
export interface CreationRequest {
  idea: string;
  /** Name of an attachment. */
  picture?: string;
  /** Called as its speakers call it; where left out, the language of the idea. */
  language?: string;
}

/** What a job says of its character. */
export interface CreationDetail {
  /** There once the card is stored. */
  character_id?: string;
  name?: string;
  /** True when the model did not come to its end. */
  is_cut?: boolean;
}

/** What the room stands on. */
export interface CreatorParts {
  jobs: JobRunner;
  models: ModelRouter;
  characters: Pick<Characters, "get" | "put" | "setAvatar">;
  attachments: Pick<Attachments, "get" | "bytes">;
  images: Pick<ImagePool, "toJpeg">;
}

interface CreationParams extends CreationRequest {
  /** Of the character to come, so that a second run makes no second one. */
  id: string;
  isPortrait: boolean;
}

const KIND = "character";
const MAX_TITLE = 80;
const FROM_PICTURE = "Character from a picture";
/** Longer side of a picture that a model is shown. */
const SENT_PX = 1568;

/** Writes characters. */
export class Creator {
  readonly #parts: CreatorParts;

  constructor(parts: CreatorParts) {
    this.#parts = parts;
    // Resumable: it is still wanted, and a model that was cut off has nothing to go on with.
    parts.jobs.register(KIND, { parallel: 1, resumable: true, run: (context) => this.#run(context) });
  }

  /**
   * Begins to write; nothing is stored. Ending `signal` ends the model.
   *
   * @throws {AppError} `not_found` for an unknown picture, and as `openWriting` does
   */
  async write(request: CreationRequest, signal: AbortSignal): Promise<Writing> {
    return await openWriting(this.#parts.models, await this.#ideaOf(request), signal);
  }

  /**
   * Starts a job whose end is a stored character; `detail` of the job names it.
   *
   * @param isPortrait Whether the picture becomes the character's portrait.
   * @throws {AppError} `not_found` for an unknown picture
   */
  async start(request: CreationRequest, isPortrait: boolean): Promise<JobSnapshot> {
    if (request.picture !== undefined) this.#parts.attachments.get(request.picture);
    const params: CreationParams = { ...request, isPortrait, id: uuidV7() };
    const title = request.idea.trim().replace(/\s+/g, " ").slice(0, MAX_TITLE) || FROM_PICTURE;
    return await this.#parts.jobs.start(KIND, { title, params });
  }

  async #run(context: JobContext): Promise<void> {
    const params = context.params as CreationParams;
    const stored = await this.#parts.characters.get(params.id).catch(noneOn("not_found"));
    if (stored !== undefined) return tell(context, params.id, stored.character.card, false);
    const writing = await this.write(params, context.signal);
    const fields: CharacterFields = {};
    let isCut: boolean;
    try {
      isCut = await follow(writing, fields, context);
    } catch (error) {
      // What came is worth keeping, unless nobody wants it or it will be written again. A name alone may be half a name.
      if (!context.signal.aborted && Object.keys(fields).length > 1) await this.#store(context, params, fields, true);
      throw error;
    }
    await context.verifying();
    await this.#store(context, params, fields, isCut);
  }

  async #store(
    context: JobContext,
    { id, picture, isPortrait }: CreationParams,
    fields: CharacterFields,
    isCut: boolean,
  ): Promise<void> {
    const { characters, attachments } = this.#parts;
    const card = createdCard(fields);
    await characters.put(id, card);
    tell(context, id, card, isCut);
    if (picture !== undefined && isPortrait) await characters.setAvatar(id, await attachments.bytes(picture));
  }

  async #ideaOf({ idea, picture, language }: CreationRequest): Promise<CharacterIdea> {
    if (picture === undefined) return { idea, language };
    const { attachments, images } = this.#parts;
    const jpeg = await images.toJpeg(await attachments.bytes(picture), { maxPx: SENT_PX });
    const pictureUrl = `data:image/jpeg;base64,${Buffer.from(jpeg.buffer).toString("base64")}`;
    return { idea, language, pictureUrl };
  }
}

/** Gathers what is written. @returns Whether the model ran out of room. */
async function follow(writing: Writing, fields: CharacterFields, context: JobContext): Promise<boolean> {
  const steps = writing.steps();
  for (;;) {
    const { done, value } = await steps.next();
    if (done) return value.isCut;
    for (const step of value) take(fields, step);
    const length = Object.values(fields).reduce((sum, said) => sum + said.length, 0);
    if (length > 0) context.progress({ done: length, total: null, unit: "letters" });
    if (fields.name !== undefined) context.detail({ name: fields.name } satisfies CreationDetail);
  }
}

function take(fields: Record<string, unknown>, step: WritingStep): void {
  fields[step.field] = "append" in step ? `${fields[step.field] ?? ""}${step.append}` : step.value;
}

function tell(context: JobContext, id: string, { data }: Card, isCut: boolean): void {
  context.detail(
    { character_id: id, name: data.name, ...(isCut && { is_cut: true }) } satisfies CreationDetail,
  );
}

/** A card has to have a name, also where its writer gave none. */
const NAMELESS = "Unnamed";

/** Makes a card; examples get the line that every example begins with. */
export function createdCard(fields: CharacterFields): Card {
  const { name, tags, mes_example: examples = "", ...texts } = fields;
  const hasMarks = examples.trim() === "" || /<START>/i.test(examples);
  return cardOf({
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
