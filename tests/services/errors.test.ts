import { expect, test } from "vitest";
import { AppError, getErrorMessage } from "../../services/errors.ts";

test("an error has its code, cause and details", () => {
  const cause = new Error("inner");
  const error = new AppError("too_many_requests", "Slow down", { cause, retryAfterSeconds: 5 });
  expect(error).toMatchObject({ code: "too_many_requests", message: "Slow down", retryAfterSeconds: 5 });
  expect(error.cause).toBe(cause);
});

test("any thrown value has a text", () => {
  expect(getErrorMessage(new Error("a"))).toBe("a");
  expect(getErrorMessage("b")).toBe("b");
});
