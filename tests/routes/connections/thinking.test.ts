/** Reasoning in the API: tokens of each effort, and models with adaptive reasoning. */
import { expect, test } from "vitest";
import { ask, gather, useModel } from "../../helpers/app/chat_client.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { openFakeAnthropic } from "../../helpers/fakes/llm/fake_llm_anthropic.ts";
import { openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";

async function readDialect(app: TestApp) {
  const list: { id: string; dialect: Record<string, unknown> }[] = await (await app.get("/api/connections")).json();
  return list.find(({ id }) => id === "double")!.dialect;
}

test("the dialect of Anthropic has the budgets that its requests contain", async () => {
  await using llm = await openFakeAnthropic();
  await using app = await openTestApp();
  await useModel(app, llm, { kind: "anthropic", model: "claude-fake" });
  const { thinking, models } = await readDialect(app) as { thinking: Record<string, unknown>; models?: unknown };
  expect(thinking.budgets).toEqual({ low: 2048, medium: 8192, high: 16384 });
  expect(models).toBeUndefined();
  for (const [effort, budget] of Object.entries(thinking.budgets as Record<string, number>)) {
    await gather(await ask(app, budget, { reasoning_effort: effort }));
    expect(llm.requests.at(-1)!.json!.thinking).toEqual({ type: "enabled", budget_tokens: budget });
  }
});

test("a model that rejects a budget is marked as choosing it itself", async () => {
  await using llm = await openFakeAnthropic({ fail: "budget" });
  await using app = await openTestApp();
  await useModel(app, llm, { kind: "anthropic", model: "claude-fake" });
  await gather(await ask(app, 1, { reasoning_effort: "high" }));
  expect((await readDialect(app)).models).toEqual({ "claude-fake": { thinking: true, adaptive: true } });
});

test("servers that accept an effort by name have no budgets", async () => {
  await using llm = await openFakeLlm();
  await using app = await openTestApp();
  await useModel(app, llm);
  expect((await readDialect(app)).thinking).not.toHaveProperty("budgets");
});
