/** Parses responses of the card site. They're undocumented, so every field may be missing or of another type. */
import { formatSitePath, parseSiteCard, type SiteCard } from "./card_site_address.ts";
import { isJsonObject, type JsonObject } from "../../json/type_guards.ts";

/** A search result, as returned by our API. */
export interface FoundCard {
  /** `creator/slug` */
  id: string;
  name: string;
  tagline: string;
  creator: string;
  tags: string[];
  /** URL path on our server. */
  avatar_url: string;
  /** The site's page. */
  page_url: string;
  downloads: number | null;
  stars: number | null;
  updated_at: string | null;
}

const MAX_TEXT = 500;
const MAX_TAGS = 50;

/** Returns the results of a search, in the current or the older format. */
export function parseNodes(answer: unknown): JsonObject[] | undefined {
  if (!isJsonObject(answer)) return undefined;
  const { nodes } = isJsonObject(answer.data) ? answer.data : answer;
  return Array.isArray(nodes) ? nodes.filter(isJsonObject) : undefined;
}

/** Reports whether the site marks a character as adult content. */
export function isForAdults({ nsfw_image, labels, topics }: JsonObject): boolean {
  const words = [labels, topics].flatMap((list) => Array.isArray(list) ? list : [])
    .map((label) => isJsonObject(label) ? label.title ?? label.name : label);
  return nsfw_image === true || words.some((word) => typeof word === "string" && /^(nsfw|nsfl)$/i.test(word.trim()));
}

/** Converts a result. @returns `undefined` without a valid path or name */
export function toFoundCard(node: JsonObject, pages: string): FoundCard | undefined {
  const card = typeof node.fullPath === "string" ? parseSiteCard(node.fullPath) : undefined;
  if (card === undefined || typeof node.name !== "string") return undefined;
  return {
    id: `${card.creator}/${card.slug}`,
    name: toText(node.name),
    tagline: toText(node.tagline),
    creator: card.creator,
    tags: toTexts(node.topics),
    avatar_url: toAvatarUrl(card),
    page_url: `${pages}/characters/${formatSitePath(card)}`,
    downloads: toNumber(node.nChats),
    stars: toNumber(node.starCount),
    updated_at: toTime(node.lastActivityAt),
  };
}

/** Returns the URL path of the image on our server. */
export function toAvatarUrl(card: SiteCard): string {
  return `/api/characters/search/${formatSitePath(card)}/avatar`;
}

/**
 * Converts a character definition, whose fields have other names, to a V2 card.
 *
 * @returns `undefined` without a definition.
 */
export function toV2Card(node: JsonObject): JsonObject | undefined {
  const { definition } = node;
  if (!isJsonObject(definition)) return undefined;
  const card = typeof node.fullPath === "string" ? parseSiteCard(node.fullPath) : undefined;
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
      tags: toTexts(node.topics),
      creator: card?.creator ?? "",
      character_version: "",
      extensions: isJsonObject(definition.extensions) ? definition.extensions : {},
    },
  };
}

function toText(value: unknown): string {
  return typeof value === "string" ? value.slice(0, MAX_TEXT).toWellFormed() : "";
}

function toTexts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string").slice(0, MAX_TAGS).map(toText) : [];
}

function toNumber(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

function toTime(value: unknown): string | null {
  const ms = typeof value === "string" ? Date.parse(value) : NaN;
  return Number.isNaN(ms) ? null : new Date(ms).toISOString();
}
