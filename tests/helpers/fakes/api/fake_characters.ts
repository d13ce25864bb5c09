/** The fake API for characters, the card site and personas. */
import type {
  Card,
  CardData,
  Character,
  CharacterItem,
  FoundCard,
  Persona,
  Portrait,
} from "../../../../static/src/api/types.ts";
import { createEmptyCard } from "../../../../static/src/state/characters/card_fields.ts";
import { plainPng } from "../../files/cards.ts";
import type { FakeApi, Handler } from "./fake_api.ts";

type Route = [method: string, pattern: RegExp, handler: Handler];

/** Characters and personas of a fake API; a test sets and reads them. */
export class FakeCharacters {
  readonly characters = new Map<string, Character>();
  readonly personas = new Map<string, Persona>();
  readonly portraits = new Map<string, Portrait>();
  found: FoundCard[] = [];
  picture = plainPng(96, 128);
  #listed: { key: string; all: Character[] } | undefined;
  #versions = new Map<string, number>();
  #clock = Date.parse("2026-01-01T00:00:00Z");

  /** Stores a character. */
  add(id: string, data: Partial<CardData> & { name: string }, fields: Partial<CharacterItem> = {}): Character {
    const card = createEmptyCard(data.name);
    Object.assign(card.data, data);
    const character = this.#itemOf(id, card, { has_avatar: true, external: false, ...fields });
    this.characters.set(id, character);
    return character;
  }

  /** Replaces a card, like another device. */
  save(id: string, card: Card): Character {
    const before = this.characters.get(id);
    const fields = { has_avatar: before?.has_avatar ?? false, external: before?.external ?? false };
    const character = this.#itemOf(id, card, fields);
    this.characters.set(id, character);
    this.#versions.set(id, (this.#versions.get(id) ?? 0) + 1);
    return character;
  }

  versionOf(id: string): string {
    return `"v${this.#versions.get(id) ?? 0}"`;
  }

  /** Stores a persona. */
  addPersona(id: string, name: string, description = ""): Persona {
    const persona: Persona = { id, name, description, has_avatar: false, updated_at: this.now() };
    this.personas.set(id, persona);
    this.#versions.set(id, (this.#versions.get(id) ?? 0) + 1);
    return persona;
  }

  /** The list of characters, cached until something changes. */
  listed(q: string, tag: string | null, isByTime: boolean): Character[] {
    const key = JSON.stringify([q, tag, isByTime, this.characters.size, this.#clock]);
    if (this.#listed?.key !== key) {
      const words = q.toLowerCase();
      const all = [...this.characters.values()]
        .filter(({ name, tags }) => [name, ...tags].join(" ").toLowerCase().includes(words))
        .filter(({ tags }) => tag === null || tags.includes(tag))
        .sort((a, b) => (isByTime ? b.updated_at < a.updated_at : a.name < b.name) ? -1 : 1);
      this.#listed = { key, all };
    }
    return this.#listed.all;
  }

  now(): string {
    return new Date(this.#clock += 1000).toISOString();
  }

  #itemOf(id: string, card: Card, fields: Pick<CharacterItem, "has_avatar" | "external">): Character {
    const { name, tags, creator } = card.data;
    const favorite = card.data.extensions.fav === true;
    const { folder = null } = (card.data.extensions.parlor ?? {}) as { folder?: string };
    return { id, name, tags, creator, favorite, folder, has_assets: false, card, updated_at: this.now(), ...fields };
  }
}

/** Creates the routes. */
export function characterRoutes(api: FakeApi): Route[] {
  const people = api.people;
  const at = (pattern: string) => new RegExp(`^/api/characters/([^/]+)${pattern}$`);
  const answer = (character: Character, status = 200) =>
    Response.json(character, { status, headers: { etag: people.versionOf(character.id) } });
  const on = (method: string, pattern: string, handler: (it: Character, request: Parameters<Handler>[0]) => Response) =>
    [method, at(pattern), (request, [, id]) => {
      const character = people.characters.get(id!);
      return character ? handler(character, request) : failure(404, "not_found", `There is no character "${id}"`);
    }] satisfies Route;
  const isStale = (id: string, headers: Headers) => {
    const wanted = headers.get("if-match");
    return wanted !== null && wanted !== people.versionOf(id);
  };
  const changed = (id: string) => api.publish("character", id);

  return [
    ["GET", /^\/api\/characters$/, ({ query }) => {
      const ids = query.get("ids")?.split(",");
      if (ids && query.get("limit") === null) {
        const known = ids.flatMap((id) => people.characters.get(id) ?? []);
        return Response.json(known.map(({ card: _, ...item }) => item));
      }
      const isWanted = query.get("favorite") === "true" ? ({ favorite }: Character) => favorite : () => true;
      const folder = query.get("folder");
      const all = people.listed(query.get("q") ?? "", query.get("tag"), query.get("sort") === "updated")
        .filter(isWanted).filter((one) => folder === null || (one.folder ?? "") === folder)
        .filter(({ id }) => ids?.includes(id) ?? true);
      if (query.get("sort") === "favorites") all.sort((a, b) => Number(b.favorite) - Number(a.favorite));
      const from = Number(query.get("cursor") ?? 0);
      const next = from + Number(query.get("limit"));
      const items = all.slice(from, next).map(({ card: _, ...item }) => item);
      return Response.json({ items, next_cursor: next < all.length ? String(next) : null });
    }],
    ["GET", /^\/api\/characters\/folders$/, () => {
      const names = [...people.characters.values()].flatMap(({ folder }) => folder ?? []);
      const folders = [...new Set(names)].sort();
      return Response.json(folders.map((name) => ({ name, count: names.filter((one) => one === name).length })));
    }],
    ["GET", /^\/api\/characters\/search$/, ({ query }) => {
      const words = (query.get("q") ?? "").toLowerCase();
      const items = people.found.filter(({ name }) => name.toLowerCase().includes(words));
      return Response.json({ items, next_cursor: null });
    }],
    ["GET", /^\/api\/characters\/search\/[^/]+\/[^/]+\/avatar$/, () => picture(people)],
    ["POST", /^\/api\/characters\/import$/, async ({ body }) => {
      const file = (body as FormData).get("file") as File;
      if (!file.name.endsWith(".json")) return failure(422, "unprocessable", `This file holds no readable card`);
      const card = createEmptyCard("");
      Object.assign(card.data, JSON.parse(await file.text()));
      const character = people.save(crypto.randomUUID(), card);
      changed(character.id);
      return answer(character, 201);
    }],
    ["POST", /^\/api\/characters\/import-url$/, ({ body }) => {
      const character = people.add(crypto.randomUUID(), { name: (body as { url: string }).url.split("/").at(-1)! });
      changed(character.id);
      return answer(character, 201);
    }],
    ["POST", /^\/api\/characters\/restore-app$/, () => {
      const character = people.add("parlor", { name: "Parlor" });
      changed(character.id);
      return answer(character);
    }],
    on("GET", "", (character) => answer(character)),
    ["PUT", at(""), ({ body, headers }, [, id]) => {
      if (isStale(id!, headers)) return failure(412, "revision_mismatch", "The character is at another version");
      const isNew = !people.characters.has(id!);
      const character = people.save(id!, (body as { card: Card }).card);
      changed(id!);
      return answer(character, isNew ? 201 : 200);
    }],
    on("DELETE", "", ({ id }) => {
      people.characters.delete(id);
      changed(id);
      return new Response(null, { status: 204 });
    }),
    on("GET", "/expressions", () => Response.json([])),
    on("GET", "/avatar", ({ has_avatar }) => has_avatar ? picture(people) : failure(404, "not_found", "No picture")),
    on("PUT", "/avatar", (character) => {
      Object.assign(character, { has_avatar: true, updated_at: people.now() });
      changed(character.id);
      return answer(character);
    }),
    on("GET", "/avatar/status", ({ id }) => Response.json(people.portraits.get(id) ?? { state: "none" })),
    on("POST", "/avatar/generate", ({ id }) => {
      people.portraits.set(id, { state: "pending" });
      return Response.json({ id: "job" }, { status: 202 });
    }),
    ["POST", /^\/api\/conversations$/, ({ body }) => {
      const beginning = body as { character_ids: string[]; persona_id?: string; greeting?: number };
      const character = people.characters.get(beginning.character_ids[0]!);
      if (character === undefined) return failure(404, "not_found", "There is no such character");
      const { first_mes, alternate_greetings } = character.card.data;
      const greetings = [first_mes, ...alternate_greetings];
      const chosen = beginning.greeting ?? 0;
      const conversation = api.addConversation(crypto.randomUUID(), "", [{
        role: "assistant",
        content: greetings[chosen],
        character_id: beginning.character_ids[0],
        variant_count: greetings.length,
        active_variant: chosen,
      }]);
      api.variants.set(conversation.messages[0]!.id, greetings);
      const participants = beginning.character_ids.map((character_id) => ({ character_id }));
      const bound = [...people.personas.values()].find(({ character_ids }) =>
        participants.length === 1 && character_ids?.includes(beginning.character_ids[0]!)
      );
      const persona_id = beginning.persona_id ?? bound?.id ?? api.settings.default_persona_id ?? undefined;
      Object.assign(conversation, { participants, persona_id });
      return Response.json(conversation, { status: 201 });
    }],
    ["GET", /^\/api\/personas$/, () => Response.json([...people.personas.values()])],
    ...personaRoutes(api),
  ];
}

function personaRoutes(api: FakeApi): Route[] {
  const people = api.people;
  const at = (pattern: string) => new RegExp(`^/api/personas/([^/]+)${pattern}$`);
  const answer = (persona: Persona, status = 200) =>
    Response.json(persona, { status, headers: { etag: people.versionOf(persona.id) } });
  return [
    ["POST", /^\/api\/personas\/import$/, async ({ body }) => {
      const file = (body as FormData).get("file") as File;
      if (!file.name.endsWith(".json")) return failure(422, "unprocessable", "This file holds no persona");
      const { name, description } = JSON.parse(await file.text());
      const persona = people.addPersona(crypto.randomUUID(), name, description);
      api.publish("persona", persona.id);
      return answer(persona, 201);
    }],
    ["GET", at(""), (_, [, id]) => {
      const persona = people.personas.get(id!);
      return persona ? answer(persona) : failure(404, "not_found", `There is no persona "${id}"`);
    }],
    ["PUT", at(""), ({ body, headers }, [, id]) => {
      const wanted = headers.get("if-match");
      if (wanted !== null && wanted !== people.versionOf(id!)) {
        return failure(412, "revision_mismatch", "The persona is at another version");
      }
      const { name, description, placement, character_ids } = body as Persona;
      const before = people.personas.get(id!);
      const persona = people.addPersona(id!, name, description);
      persona.has_avatar = before?.has_avatar ?? false;
      persona.placement = placement ?? undefined;
      persona.character_ids = character_ids ?? before?.character_ids;
      api.publish("persona", id!);
      return answer(persona, before ? 200 : 201);
    }],
    ["DELETE", at(""), (_, [, id]) => {
      people.personas.delete(id!);
      api.publish("persona", id!);
      return new Response(null, { status: 204 });
    }],
    ["GET", at("/avatar"), () => picture(people)],
    ["PUT", at("/avatar"), (_, [, id]) => {
      const persona = Object.assign(people.personas.get(id!)!, { has_avatar: true, updated_at: people.now() });
      api.publish("persona", id!);
      return answer(persona);
    }],
  ];
}

function picture(people: FakeCharacters): Response {
  return new Response(people.picture, { headers: { "content-type": "image/png", "cache-control": "no-store" } });
}

function failure(status: number, code: string, message: string): Response {
  return Response.json({ error: { code, message, request_id: "req-1" } }, { status });
}
