import { expect, test } from "vitest";
import { joinQuickReply } from "../../../../static/src/state/chat/quick_replies.ts";

test("a quick reply is put before or after what is typed, or where its text has {{input}}", () => {
  expect(joinQuickReply("*waves*", "insert_after", "Hi")).toBe("Hi *waves*");
  expect(joinQuickReply("*waves*", "send_before", "Hi")).toBe("*waves* Hi");
  expect(joinQuickReply("*waves*", "send", "Hi")).toBe("*waves*");
  expect(joinQuickReply("*waves*", "insert_before", "  ")).toBe("*waves*");
  expect(joinQuickReply('She says "{{Input}}" {{input}}', "send", "$&")).toBe('She says "$&" $&');
  expect(joinQuickReply("{{input}}!", "insert_after", "")).toBe("!");
});
