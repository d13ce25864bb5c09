import { expect, test } from "vitest";
import { isAttachmentName } from "../../../services/attachments/attachment_rows.ts";
import { isDeviceName, isId } from "../../../services/storage/ids.ts";

const DEVICES = ["con", "PRN", "Aux", "nul", "COM0", "com1", "Com9", "lpt1", "LPT9"];

test.each(DEVICES)("refuses %s as an id and as an attachment name, with any extension", { tags: ["P01"] }, (name) => {
  expect([isId(name), isAttachmentName(name)]).toEqual([false, false]);
  for (const extension of [".json", ".tar.gz", "."]) expect(isAttachmentName(name + extension)).toBe(false);
});

test.each(["COM\u00b9", "lpt\u00b2.txt", "CONIN$", "conout$.log", "nul .json"])("recognizes the device name %s", {
  tags: ["P01"],
}, (name) => {
  expect(isDeviceName(name)).toBe(true);
});

test.each(["icon", "con1", "com", "com10", "nul-1", "_con", "auxiliary", "lpt"])("accepts %s as an id", (name) => {
  expect([isId(name), isAttachmentName(`${name}.png`)]).toEqual([true, true]);
});
