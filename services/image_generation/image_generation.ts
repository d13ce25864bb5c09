/** Opens image generation: backend profiles, workflows, the generator and its jobs. */
import type { Attachments } from "../attachments/attachments.ts";
import type { ImagePool } from "../attachments/images/image_pool.ts";
import type { Painter } from "../characters/portraits.ts";
import type { PurposeSealer } from "../crypto/sealer.ts";
import { AppError } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import { openHttpClient } from "../http/http_client.ts";
import type { JobRunner } from "../jobs/job_runner.ts";
import type { DataDir } from "../storage/data_dir.ts";
import type { Database, Statement } from "../storage/database/database.ts";
import type { Versions } from "../storage/versions.ts";
import type { BackendLimits } from "./backend.ts";
import { BackendProfiles } from "./backend_profiles.ts";
import { Workflows, type WorkflowTrash } from "./comfyui/workflows.ts";
import { ImageGenerator } from "./image_generator.ts";
import { ImageJobs, type MessageImages } from "./image_jobs.ts";
import { createPortraitGenerator, type PortraitDeps } from "./portrait_generator.ts";

/** The services of image generation. */
export interface ImageGeneration {
  profiles: BackendProfiles;
  workflows: Workflows;
  generator: ImageGenerator;
  imageJobs: ImageJobs;
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
      restore(record: unknown, takeOut: Statement): Promise<void>;
      purge(record: unknown, takeOut: Statement): Promise<void>;
    }): void;
  };
  versions: Versions;
  attachments: Pick<Attachments, "storeInline" | "get" | "readAll">;
  avatars: { read(id: string): Promise<Uint8Array> };
  messages: MessageImages;
  ask: PortraitDeps["ask"];
  imagePool: Pick<ImagePool, "toPng">;
  now(): number;
  limits?: Partial<BackendLimits>;
}

/** Opens image generation. No backend is contacted until an image is requested. */
export async function openImageGeneration(
  deps: ImageGenerationDeps,
): Promise<{ images: ImageGeneration; painter: Painter; close(): Promise<void> }> {
  const { db, sealer, events, jobs, trash, versions, attachments, avatars, messages, ask, imagePool, now, limits } =
    deps;
  const client = openHttpClient();
  const profiles = await BackendProfiles.open({ db, sealer, events, now });
  const folder = await deps.dataDir.ensureFolder("workflows");
  const workflows = new Workflows({ db, trash, versions, events, folder });
  trash.register("workflow", workflows);
  const generator = new ImageGenerator({
    profiles,
    workflows,
    client,
    limits,
    readImage: (name) => attachments.readAll(name),
    readCharacterImage: (id) => avatars.read(id).catch(ignoreNotFound),
  });
  const imageJobs = new ImageJobs({ jobs, profiles, generator, attachments, messages, now });
  return {
    images: { profiles, workflows, generator, imageJobs },
    painter: createPortraitGenerator({ profiles, generator, ask, imagePool }),
    async close() {
      // First, while the backends can still be told to stop. Queued jobs resume at the next start.
      await jobs.close();
      client.close();
    },
  };
}

function ignoreNotFound(error: unknown): undefined {
  if (!(error instanceof AppError) || error.code !== "not_found") throw error;
  return undefined;
}
