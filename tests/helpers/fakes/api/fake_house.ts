/** The fake API for the list of conversations, the trash and jobs. */
import type { DataReport, Job, Releases, SearchHit, TrashItem } from "../../../../static/src/api/types.ts";
import type { FakeApi, Handler } from "./fake_api.ts";

/** Trash and jobs of a fake API. */
export class FakeHouse {
  trash: TrashItem[] = [];
  jobs: Job[] = [];
  /** Functions that restore items of the trash, by id. */
  readonly restores = new Map<string, () => void>();
  /** Number of hits on a page of the search. */
  hitsPerPage = 20;
  importable = { kinds: ["sillytavern", "tavern", "chatgpt", "openwebui", "parlor", "newer"], max_bytes: 50_000_000 };
  backupDir: string | null = null;
  backups: DataReport["backups"] = [];
  releases: Releases = { version: "0.2.0", host: null, checked_at: null, newer: null };
  changelog = [
    "# Changelog\n\nChanges.\n",
    "## 0.2.0 (2026-01-01)\n\n### Fixed\n\n- Chats stay where they are. See [Chats](docs/api.md).\n",
    "## 0.1.0 (2025-01-01)\n\n- The first one\n",
  ].join("\n");
  /** Uploads of dry runs expire. */
  isUploadGone = false;

  /** Starts a job. Tests change its state. */
  newJob(kind: string, title: string): Job {
    const now = new Date().toISOString();
    const job: Job = {
      id: crypto.randomUUID(),
      kind,
      title,
      state: "running",
      progress: null,
      created_at: now,
      updated_at: now,
    };
    this.jobs = [job, ...this.jobs];
    return job;
  }
}

/** Pages of the search in one conversation have two hits, so that tests load several pages. */
const HITS_PER_PAGE_INSIDE = 2;

/** Creates the routes. */
export function houseRoutes(api: FakeApi): [string, RegExp, Handler][] {
  const { house } = api;
  const none = () => new Response(null, { status: 204 });
  return [
    ["GET", /^\/api\/search$/, ({ query }) => {
      const inside = query.get("conversation_id");
      const hits = findHits(api, query.get("q") ?? "", inside);
      const from = Number(query.get("cursor") ?? 0);
      const next = from + (inside === null ? house.hitsPerPage : HITS_PER_PAGE_INSIDE);
      return Response.json({ items: hits.slice(from, next), next_cursor: next < hits.length ? String(next) : null });
    }],
    ["GET", /^\/api\/trash$/, () => Response.json(house.trash)],
    ["POST", /^\/api\/trash\/([^/]+)\/restore$/, (_, [, id]) => {
      house.trash = house.trash.filter((item) => item.id !== id);
      house.restores.get(id!)?.();
      house.restores.delete(id!);
      api.publish("trash", "trash");
      return none();
    }],
    ["DELETE", /^\/api\/trash$/, () => {
      house.trash = [];
      return none();
    }],
    ["GET", /^\/api\/data$/, () =>
      Response.json({
        used: [{ what: "chats", size_bytes: 40_960 }],
        backup_dir: house.backupDir,
        backup_schedule: "daily",
        backup_keep: 7,
        backup_fixed: [],
        backup_same_disk: false,
        backups: house.backups,
      })],
    [
      "GET",
      /^\/api\/findings$/,
      () => Response.json([{ level: "ok", code: "config_ok", params: {}, about: "The configuration is valid" }]),
    ],
    ["GET", /^\/api\/releases$/, () => Response.json(house.releases)],
    ["GET", /^\/api\/changelog$/, () => Response.json({ text: house.changelog })],
    ["GET", /^\/api\/import\/sources$/, () => Response.json([])],
    ["GET", /^\/api\/import$/, () => Response.json(house.importable)],
    ["GET", /^\/api\/export$/, () => new Response("everything", { headers: { "content-type": "application/zip" } })],
    ["POST", /^\/api\/export$/, () => new Response("some", { headers: { "content-type": "application/zip" } })],
    ["POST", /^\/api\/import$/, ({ query }) => {
      if (query.has("upload_id") && house.isUploadGone) {
        const error = { code: "not_found", message: "There is no such upload any more", request_id: "req-1" };
        return Response.json({ error }, { status: 404 });
      }
      const job = house.newJob("import", `Import of ${query.get("kind")}`);
      return Response.json(job, { status: 202 });
    }],
    ["POST", /^\/api\/data\/backups$/, () => Response.json(house.newJob("backup", "Backup"), { status: 202 })],
    ["GET", /^\/api\/jobs$/, () => Response.json(house.jobs.map(listed))],
    ["GET", /^\/api\/jobs\/([^/]+)$/, (_, [, id]) => Response.json(house.jobs.find((job) => job.id === id))],
    ["POST", /^\/api\/jobs\/([^/]+)\/cancel$/, (_, [, id]) => {
      house.jobs = house.jobs.map((job) => job.id === id ? { ...job, state: "cancelled" as const } : job);
      api.publish("job", id!);
      return Response.json(house.jobs.find((job) => job.id === id));
    }],
  ];
}

/** The list's version of a job, without arrays and objects in `detail`. */
function listed(job: Job): Job {
  const values = Object.entries(job.detail ?? {}).filter(([, value]) => typeof value !== "object");
  return { ...job, detail: Object.fromEntries(values) };
}

/** Newest first, like the server. Titles are only searched if all conversations are. */
function findHits(api: FakeApi, query: string, inside: string | null): SearchHit[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const holdsAll = (text: string) => words.every((word) => text.toLowerCase().includes(word));
  const hits: SearchHit[] = [];
  for (const { id, title, messages, updated_at } of api.conversations.values()) {
    if (inside !== null && id !== inside) continue;
    const shared = { conversation_id: id, title };
    if (inside === null && holdsAll(title)) {
      hits.push({ ...shared, message_id: null, role: null, snippet: title, created_at: updated_at });
    }
    for (const { id: message_id, role, content, created_at = updated_at } of messages.toReversed()) {
      const snippet = String(content);
      if (holdsAll(snippet)) hits.push({ ...shared, message_id, role, snippet, created_at });
    }
  }
  return hits;
}
