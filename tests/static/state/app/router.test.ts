import { expect, test } from "vitest";
import { parsePath } from "../../../../static/src/state/app/router.ts";

test.each([
  ["/", { name: "home" }],
  ["/new", { name: "new_chat", isTemporary: false }],
  ["/temporary", { name: "new_chat", isTemporary: true }],
  ["/c/abc", { name: "chat", conversationId: "abc" }],
  ["/c/a%20b", { name: "chat", conversationId: "a b" }],
  ["/search", { name: "search" }],
  ["/search/x", { name: "unknown" }],
  ["/activity", { name: "activity" }],
  ["/settings", { name: "settings", section: "", item: undefined }],
  ["/settings/connections", { name: "settings", section: "connections", item: undefined }],
  ["/settings/connections/new", { name: "settings", section: "connections", item: "new" }],
  ["/share", { name: "share" }],
  ["/share/x", { name: "unknown" }],
  ["/welcome", { name: "welcome", step: "model" }],
  ["/welcome/passkey", { name: "welcome", step: "passkey" }],
  ["/welcome/else", { name: "unknown" }],
  ["/welcome/name/x", { name: "unknown" }],
  ["/pair", { name: "pair" }],
  ["/cli", { name: "cli" }],
  ["/pair/x", { name: "unknown" }],
  ["/c", { name: "unknown" }],
  ["/c/a/b", { name: "unknown" }],
  ["/new/x", { name: "unknown" }],
  ["/settings/a/b/c", { name: "unknown" }],
  ["/characters", { name: "characters" }],
  ["/characters/browse", { name: "card_site" }],
  ["/characters/fox", { name: "character", characterId: "fox", isEdited: false }],
  ["/characters/fox/edit", { name: "character", characterId: "fox", isEdited: true }],
  ["/characters/fox/other", { name: "unknown" }],
  ["/nowhere", { name: "unknown" }],
  ["/c/%E0%A4%A", { name: "chat", conversationId: "%E0%A4%A" }],
])("the path %s opens its screen", (path, screen) => {
  expect(parsePath(path)).toEqual(screen);
});
