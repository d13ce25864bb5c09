import type { Job } from "../../../../static/src/api/types.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually, openUiBench, type UiBench } from "../../../helpers/browser/ui_page.ts";

let bench: UiBench;
beforeAll(async () => {
  bench = await openUiBench();
});
afterAll(() => bench.close());

const NOW = new Date().toISOString();
const DOWNLOAD: Job = {
  id: "j1",
  kind: "download",
  title: "gemma-3-4b.gguf",
  state: "running",
  progress: { done: 1_200_000_000, total: 4_000_000_000, unit: "bytes" },
  created_at: NOW,
  updated_at: NOW,
};

test("lists everything that runs, live, and can stop each", async () => {
  await using ui = await bench.open("/activity", {
    prepare: (api) => {
      api.addConversation("c1", "A story", [{ role: "user", content: "Go" }]);
      api.house.jobs = [DOWNLOAD, {
        ...DOWNLOAD,
        id: "j0",
        title: "An import",
        state: "failed",
        error: { code: "x", message: "No room" },
      }];
    },
  });
  const { page, api } = ui;
  const running = page.getByRole("list", { name: "Running" });
  await running.getByText("1.2 GB of 4 GB").waitFor();
  await page.getByRole("list", { name: "Recently finished" }).getByText("No room").waitFor();
  const reply = api.startReply("c1", "r1");
  await running.getByRole("link", { name: "A story" }).waitFor();
  await page.getByRole("link", { name: /^Activity\s*, 2 running$/ }).waitFor();
  api.house.jobs = api.house.jobs.map((job) =>
    job.id === "j1" ? { ...job, progress: { ...job.progress!, done: 3_000_000_000 } } : job
  );
  api.publish("job", "j1");
  await running.getByText("3 GB of 4 GB").waitFor();
  await page.getByRole("button", { name: "Stop the reply in “A story”" }).click();
  await eventually(() => reply.message.status, (status) => status === "stopped");
  await running.getByRole("link", { name: "A story" }).waitFor({ state: "detached" }); // the next one moves up
  await page.getByRole("button", { name: "Cancel “gemma-3-4b.gguf”" }).click();
  await page.getByText("Nothing is running").waitFor();
  await page.getByText(/^Canceled/).waitFor();
  expect(ui.errors).toEqual([]);
});

test("each job says what it is", async () => {
  const job = (kind: string) => ({ ...DOWNLOAD, id: kind, kind, title: `A ${kind}`, state: "done" as const });
  await using ui = await bench.open("/activity", {
    prepare: (api) => api.house.jobs = ["model_download", "import", "from_a_newer_version"].map(job),
  });
  const row = (title: string) => ui.page.getByRole("listitem").filter({ hasText: title });
  await row("A model_download").getByText(/^Download of a model · Done · /).waitFor();
  await row("A import").getByText(/^Import · Done · /).waitFor();
  await row("A from_a_newer_version").getByText(/^Done · /).waitFor();
});

test("a job that can no longer be canceled stays, with the reason", async () => {
  await using ui = await bench.open("/activity", {
    prepare: (api) => {
      api.house.jobs = [DOWNLOAD];
      api.refuse("POST /api/jobs/j1/cancel", { status: 409, code: "conflict", message: "The job is being verified" });
    },
  });
  await ui.page.getByRole("button", { name: "Cancel “gemma-3-4b.gguf”" }).click();
  await ui.page.getByText("The job is being verified").waitFor();
  await ui.page.getByText("1.2 GB of 4 GB").waitFor();
});

test("lists deleted items in the trash, restores them, and deletes permanently only on request", async () => {
  await using ui = await bench.open("/settings/trash", {
    prepare: (api) => {
      api.house.trash = [
        { id: "t1", kind: "conversation", title: "Lost chat", deleted_at: NOW },
        { id: "t2", kind: "message", title: "Hello there", deleted_at: NOW },
      ];
      api.house.restores.set("t1", () => {
        const conversation = api.addConversation("c1", "Lost chat");
        api.publish("conversation", "c1", conversation.revision);
      });
    },
  });
  const { page, api } = ui;
  await page.getByRole("button", { name: "Restore “Lost chat”" }).click();
  await page.getByText("Restored “Lost chat”").waitFor();
  await page.getByRole("navigation").getByRole("link", { name: "Lost chat" }).waitFor();
  await page.getByRole("button", { name: "Empty trash" }).click();
  const dialog = page.getByRole("dialog", { name: "Empty trash?" });
  await dialog.getByText("permanently deletes 1 item").waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await expect.poll(() => api.house.trash).toHaveLength(1);
  await page.getByRole("button", { name: "Empty trash" }).click();
  await dialog.getByRole("button", { name: "Empty trash" }).click();
  await page.getByRole("heading", { name: "Trash is empty" }).waitFor();
  await expect.poll(() => api.house.trash).toEqual([]);
});

test("shows why an item can't be restored", async () => {
  await using ui = await bench.open("/settings/trash", {
    prepare: (api) => {
      api.house.trash = [{ id: "t1", kind: "message", title: "Hello", deleted_at: NOW }];
      api.refuse("POST /api/trash/t1/restore", { status: 409, code: "conflict", message: "Its chat is gone" });
    },
  });
  await ui.page.getByRole("button", { name: "Restore “Hello”" }).click();
  await ui.page.getByText("Its chat is gone").waitFor();
  await expect.poll(() => ui.page.getByRole("button", { name: "Restore “Hello”" }).isEnabled()).toBe(true);
});
