/** What the card site answers, made into what we know. Nothing in it is promised; everything may be missing or of another type. */
import { pathOf, type SiteCard, siteCardOf } from "./card_site_address.ts";
import { isJsonObject, type JsonObject } from "../../json/type_guards.ts";

/** One result of a search, as the API shows it. */
export interface FoundCard {
  /** `creator/slug` */
  id: string;
  name: string;
  tagline: string;
  creator: string;
  tags: string[];
  /** Address of ours. */
  avatar_url: string;
  /** The site's page. */
  page_url: string;
  downloads: number | null;
  stars: number | null;
  updated_at: string | null;
}

const MAX_TEXT = 500;
const MAX_TAGS = 50;

/** Gives the results of a search, in its present or its older form. */
export function nodesOf(answer: unknown): JsonObject[] | undefined {
  if (!isJsonObject(answer)) return undefined;
  const { nodes } = isJsonObject(answer.data) ? answer.data : answer;
  return Array.isArray(nodes) ? nodes.filter(isJsonObject) : undefined;
}

/** Tells whether the site marks a character as not for everybody. */
export function isForAdults({ nsfw_image, labels, topics }: JsonObject): boolean {
  const words = [labels, topics].flatMap((list) => Array.isArray(list) ? list : [])
    .map((label) => isJsonObject(label) ? label.title ?? label.name : label);
  return nsfw_image === true || words.some((word) => typeof word === "string" && /^(nsfw|nsfl)$/i.test(word.trim()));
}

/** Gives a result, or `undefined` for one without the names that lead to its card. */
export function foundCardOf(node: JsonObject, pages: string): FoundCard | undefined {
  const card = typeof node.fullPath === "string" ? siteCardOf(node.fullPath) : undefined;
  if (card === undefined || typeof node.name !== "string") return undefined;
  return {
    id: `${card.creator}/${card.slug}`,
    name: textOf(node.name),
    tagline: textOf(node.tagline),
    creator: card.creator,
    tags: stringsOf(node.topics),
    avatar_url: pictureUrl(card),
    page_url: `${pages}/characters/${pathOf(card)}`,
    downloads: numberOf(node.nChats),
    stars: numberOf(node.starCount),
    updated_at: timeOf(node.lastActivityAt),
  };
}

/** Gives the address of ours under which a found character's picture is. */
export function pictureUrl(card: SiteCard): string {
  return `/api/characters/search/${pathOf(card)}/avatar`;
}

/**
 * Makes a V2 card of a character's definition, whose fields are named otherwise.
 *
 * @returns `undefined` when it was sent without one.
 */
export function cardOfDefinition(node: JsonObject): JsonObject | undefined {
  const { definition } = node;
  if (!isJsonObject(definition)) return undefined;
  const card = typeof node.fullPath === "string" ? siteCardOf(node.fullPath) : undefined;
  const text = (value: unknown) => typeof value === "string" ? value : "";
  return {
    spec: "chara_card_v2",
    spec_version: "2.0",
    data: {
      name: text(definition.name) || text(node.name),
      description: text(definition.personality),
      personality: text(definition.tavern_personality),
      scenario: text(definition.scenario),
      first_mes: text(definition.first_message),
      mes_example: text(definition.example_dialogs),
      creator_notes: text(definition.description),
      system_prompt: text(definition.system_prompt),
      post_history_instructions: text(definition.post_history_instructions),
      alternate_greetings: Array.isArray(definition.alternate_greetings) ? definition.alternate_greetings : [],
      ...(isJsonObject(definition.embedded_lorebook) ? { character_book: definition.embedded_lorebook } : {}),
      tags: stringsOf(node.topics),
      creator: card?.creator ?? "",
      character_version: "",
      extensions: isJsonObject(definition.extensions) ? definition.extensions : {},
    },
  };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value.slice(0, MAX_TEXT).toWellFormed() : "";
}

function stringsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string").slice(0, MAX_TAGS).map(textOf) : [];
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

function timeOf(value: unknown): string | null {
  const ms = typeof value === "string" ? Date.parse(value) : NaN;
  return Number.isNaN(ms) ? null : new Date(ms).toISOString();
}
