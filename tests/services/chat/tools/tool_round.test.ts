import { expect, test } from "vitest";
import { AppError } from "../../../../services/errors.ts";
import type { Reply } from "../../../../services/chat/reply.ts";
import { ToolApproval, type ToolApprovalDeps, type ToolRound } from "../../../../services/chat/tools/tool_round.ts";
import type { OpenCall } from "../../../../services/chat/tools/tool_messages.ts";

const TOOL = { serverId: "s", serverName: "s", name: "add", hints: {}, fingerprint: "f1" };

/** A waiting call, and a round whose storage the test completes. */
function openApproval() {
  const call: OpenCall = {
    record: {
      id: "call_1",
      conversationId: "c1",
      messageId: "m1",
      name: "add",
      arguments: "{}",
      state: "pending",
      tool: TOOL,
    },
    extra: {},
  };
  const writes: PromiseWithResolvers<void>[] = [];
  const round = {
    calls: [call],
    find: () => call,
    store() {
      const write = Promise.withResolvers<void>();
      writes.push(write);
      return write.promise;
    },
    syncReply() {},
    show() {},
  };
  const deps = {
    registry: () => Promise.resolve({ findTool: () => Promise.resolve(TOOL) }),
    events: { publish() {} },
    now: () => 0,
  };
  const reply = { conversationId: "c1", signal: new AbortController().signal };
  const approval = new ToolApproval(
    deps as unknown as ToolApprovalDeps,
    reply as unknown as Reply,
    round as unknown as ToolRound,
  );
  return { approval, call, writes };
}

test("a call counts as decided only after the decision is stored, and keeps waiting if it can't be stored", async () => {
  const { approval, call, writes } = openApproval();
  const order: string[] = [];
  const decideAndFail = approval.decide("call_1", { decision: "allow", by: "owner" });
  await expect.poll(() => writes.length).toBe(1);
  const waiting = approval.waitForDecision(call).then(() => order.push("runs"));
  writes[0]!.reject(new AppError("storage_full", "the disk is full"));
  await expect(decideAndFail).rejects.toMatchObject({ code: "storage_full" });
  expect(call.record.state).toBe("pending");

  const decide = approval.decide("call_1", { decision: "allow", by: "owner" });
  await expect.poll(() => writes.length).toBe(2);
  order.push("stored");
  writes[1]!.resolve();
  expect(await decide).toMatchObject({ state: "running", decidedBy: "owner" });
  await waiting;
  expect(order).toEqual(["stored", "runs"]);
});
