import { expect, test } from "vitest";
import { LazyScope } from "../../../services/async/lazy.ts";

test("opens each service once, on first use, and closes everything in reverse", async () => {
  const scope = new LazyScope();
  const events: string[] = [];
  scope.onClose(() => void events.push("close core"));
  const llm = scope.lazy((onClose) => {
    events.push("open llm");
    onClose(() => void events.push("close llm"));
    return Promise.resolve("llm");
  });
  const chat = scope.lazy(async (onClose) => {
    onClose(() => void events.push("close chat"));
    return `chat with ${await llm()}`;
  });
  expect([events, llm.opened]).toEqual([[], undefined]);
  expect(await Promise.all([chat(), chat(), llm()])).toEqual(["chat with llm", "chat with llm", "llm"]);
  await scope.close();
  expect(events).toEqual(["open llm", "close chat", "close llm", "close core"]);
});

test("closes the parts of a service that fails to open, and retries on the next use", async () => {
  const scope = new LazyScope();
  const events: string[] = [];
  let isFull = true;
  const service = scope.lazy((onClose) => {
    onClose(() => void events.push("part closed"));
    return isFull ? Promise.reject(new Error("The disk is full")) : Promise.resolve("service");
  });
  await expect(Promise.allSettled([service(), service()])).resolves.toMatchObject([
    { reason: { message: "The disk is full" } },
    { reason: { message: "The disk is full" } },
  ]);
  expect([events, service.opened]).toEqual([["part closed"], undefined]);
  isFull = false;
  expect(await service()).toBe("service");
  await scope.close();
  expect(events).toEqual(["part closed", "part closed"]);
});

test("close waits for services that are opening, and refuses to open others", async () => {
  const scope = new LazyScope();
  const events: string[] = [];
  const go = Promise.withResolvers<void>();
  const slow = scope.lazy(async (onClose) => {
    await go.promise;
    onClose(() => void events.push("closed"));
    return "slow";
  });
  const late = scope.lazy(() => Promise.resolve("late"));
  const asked = slow();
  const closing = scope.close();
  await expect(late()).rejects.toMatchObject({ code: "not_available" });
  go.resolve();
  expect(await asked).toBe("slow");
  await closing;
  expect(events).toEqual(["closed"]);
});
