/** The parts of the API, each loaded with its schemas and services when a path of it is asked for. */
import type { Answering } from "./chain.ts";
import type { Router } from "./http/router.ts";

/** Some paths, and the routes that lie at and below them. */
export interface Part {
  /** `"/api/personas"`, or `"/api/conversations/{id}/export"`: the path with more segments decides. */
  paths: readonly string[];
  /** Loads the routes. They are asked in this order. */
  load(): Promise<Router[]>;
}

/** Finds and loads parts. */
export interface Parts {
  /** Gives who answers a path: at once where it is loaded, `undefined` where no part has it. */
  answering(path: string): Answering | Promise<Answering> | undefined;
  /** Loads the parts of some paths that are not loaded yet. */
  load(paths: readonly string[]): Promise<void>;
  /** Gives the routes of all parts, in the order of the parts. */
  all(): Promise<Router[]>;
}

interface OpenPart {
  part: Part;
  routers?: Promise<Router[]>;
  answering?: Answering | Promise<Answering>;
}

/** @param around Puts the chain around the routes of a part. */
export function createParts(list: readonly Part[], around: (routers: Router[]) => Answering): Parts {
  const open: OpenPart[] = list.map((part) => ({ part }));
  /** By the first two segments, which no path leaves open; longer paths first. */
  const byHead = new Map<string, { segments: string[]; part: OpenPart }[]>();
  for (const part of open) {
    for (const path of part.part.paths) {
      const segments = path.split("/");
      const head = headOf(path);
      const found = byHead.get(head) ?? [];
      found.push({ segments, part });
      byHead.set(head, found.sort((a, b) => b.segments.length - a.segments.length));
    }
  }

  function find(path: string): OpenPart | undefined {
    const candidates = byHead.get(headOf(path));
    if (candidates === undefined) return undefined;
    const segments = path.split("/");
    return candidates.find(({ segments: wanted }) =>
      wanted.length <= segments.length && wanted.every((part, at) => part === segments[at] || part.startsWith("{"))
    )?.part;
  }

  /** A part that cannot be loaded is tried again by the next request for it. */
  function routersOf(part: OpenPart): Promise<Router[]> {
    if (part.routers !== undefined) return part.routers;
    const loading = part.part.load();
    part.routers = loading;
    loading.catch(() => part.routers = undefined);
    return loading;
  }

  function answeringOf(part: OpenPart): Answering | Promise<Answering> {
    if (part.answering !== undefined) return part.answering;
    const loading = routersOf(part).then(around);
    part.answering = loading;
    loading.then((answering) => part.answering = answering, () => part.answering = undefined);
    return loading;
  }

  return {
    answering(path) {
      const part = find(path);
      return part === undefined ? undefined : answeringOf(part);
    },
    async load(paths) {
      await Promise.all(paths.map((path) => find(path)).map((part) => part && answeringOf(part)));
    },
    all: async () => (await Promise.all(open.map(routersOf))).flat(),
  };
}

/** `"/api/chat"` of `"/api/chat/replies/m1"`. */
function headOf(path: string): string {
  return path.split("/", 3).join("/");
}
