/** Telling that a character is there which was written in the background. */
import type { Job } from "../../api/types.ts";
import { effect } from "@preact/signals";
import { texts } from "../../texts/texts.ts";
import type { Store } from "../store.ts";

/** What the job of a written character says of it. */
interface Detail {
  character_id?: string;
  name?: string;
  is_cut?: boolean;
}

/** Gives the address of the character that a job stored. */
export function characterAddress(job: Job): string | undefined {
  const id = (job.detail as Detail | undefined)?.character_id;
  return job.kind === "character" && id !== undefined ? `/characters/${encodeURIComponent(id)}` : undefined;
}

/** Shows a message with a way to the character once its job is over, wherever the reader is then. */
export function tellWhenWritten(store: Store, { id }: Job): void {
  store.activity.onChanged();
  const end = effect(() => {
    const job = store.activity.jobs.value.find((each) => each.id === id);
    if (job === undefined || !["done", "failed", "cancelled"].includes(job.state)) return;
    // Outside of the effect, which would run again with every message there is.
    queueMicrotask(() => {
      end();
      if (job.state !== "cancelled") tell(store, job);
    });
  });
}

function tell({ router, toasts }: Store, job: Job): void {
  const t = texts.creator;
  const { name = job.title, is_cut: isCut } = (job.detail ?? {}) as Detail;
  const address = characterAddress(job);
  const text = address === undefined ? t.jobFailed(name) : isCut ? t.unfinished(name) : t.written(name);
  toasts.show(text, {
    isError: job.state === "failed",
    action: {
      label: address === undefined ? t.show : texts.characters.open,
      run: () => router.go(address ?? "/activity"),
    },
  });
}
