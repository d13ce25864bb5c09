import { expect, test } from "vitest";
import { screenOf } from "../../../static/src/state/router.ts";

test.each([
  ["/", { name: "home" }],
  ["/new", { name: "new_chat" }],
  ["/c/abc", { name: "chat", conversationId: "abc" }],
  ["/c/a%20b", { name: "chat", conversationId: "a b" }],
  ["/settings", { name: "settings", section: "general", item: undefined }],
  ["/settings/connections", { name: "settings", section: "connections", item: undefined }],
  ["/settings/connections/new", { name: "settings", section: "connections", item: "new" }],
  ["/c", { name: "unknown" }],
  ["/c/a/b", { name: "unknown" }],
  ["/new/x", { name: "unknown" }],
  ["/settings/a/b/c", { name: "unknown" }],
  ["/characters", { name: "unknown" }],
  ["/c/%E0%A4%A", { name: "chat", conversationId: "%E0%A4%A" }],
])("the address %s shows its screen", (path, screen) => {
  expect(screenOf(path)).toEqual(screen);
});
