/** Opens the room: profiles, workflows, drawing and its jobs, each once. */
import type { Attachments } from "../attachments/attachments.ts";
import type { ImagePool } from "../attachments/images/image_pool.ts";
import type { Painter } from "../characters/portraits.ts";
import type { PurposeSealer } from "../crypto/sealer.ts";
import { AppError } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { JobRunner } from "../jobs/job_runner.ts";
import { openOwnerClient } from "../http/http_client.ts";
import type { Database, Statement } from "../storage/database/database.ts";
import type { DataDir } from "../storage/data_dir.ts";
import type { Versions } from "../storage/versions.ts";
import type { BackendLimits } from "./backend.ts";
import { Drawing } from "./image_generator.ts";
import { Generations, type MessagePictures } from "./image_jobs.ts";
import { ImageProfiles } from "./backend_profiles.ts";
import { createPainter, type PainterParts } from "./portrait_generator.ts";
import { Workflows, type WorkflowTrash } from "./comfyui/workflows.ts";

/** Everything about drawn pictures. */
export interface ImageRoom {
  profiles: ImageProfiles;
  workflows: Workflows;
  drawing: Drawing;
  generations: Generations;
}

/** What the room stands on. */
export interface ImageRoomOptions {
  db: Database;
  /** For the purpose "images". */
  sealer: PurposeSealer;
  events: EventHub;
  jobs: JobRunner;
  dataDir: Pick<DataDir, "ensureFolder">;
  trash: WorkflowTrash & {
    register(kind: string, handler: {
      restore(record: unknown, takeOut: Statement): Promise<void>;
      purge(record: unknown, takeOut: Statement): Promise<void>;
    }): void;
  };
  versions: Versions;
  attachments: Pick<Attachments, "keep" | "get" | "bytes">;
  avatars: { read(id: string): Promise<Uint8Array> };
  messages: MessagePictures;
  ask: PainterParts["ask"];
  pictures: Pick<ImagePool, "toPng">;
  now(): number;
  limits?: Partial<BackendLimits>;
}

/** Opens the room. Nothing is asked of any backend before somebody wants a picture. */
export async function openImages(
  options: ImageRoomOptions,
): Promise<{ room: ImageRoom; painter: Painter; close(): Promise<void> }> {
  const { db, sealer, events, jobs, trash, versions, attachments, avatars, messages, ask, pictures, now, limits } =
    options;
  const client = openOwnerClient({ what: "the image server" });
  const profiles = await ImageProfiles.open({ db, sealer, events, now });
  const workflows = new Workflows({
    ...{ db, trash, versions, events },
    folder: await options.dataDir.ensureFolder("workflows"),
  });
  trash.register("workflow", workflows);
  const drawing = new Drawing({
    ...{ profiles, workflows, client, limits },
    readPicture: (name) => attachments.bytes(name),
    characterPicture: (id) => avatars.read(id).catch(onlyMissing),
  });
  const generations = new Generations({ jobs, profiles, drawing, attachments, messages, now });
  return {
    room: { profiles, workflows, drawing, generations },
    painter: createPainter({ profiles, drawing, ask, images: pictures }),
    async close() {
      // While the backends can still be told to stop; those that wait for their turn go on at the next start.
      await jobs.close();
      client.close();
    },
  };
}

function onlyMissing(error: unknown): undefined {
  if (!(error instanceof AppError) || error.code !== "not_found") throw error;
  return undefined;
}
