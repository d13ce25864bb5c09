import { expect, test } from "vitest";
import { saveConfigKey } from "../../../services/config/config_file.ts";
import { tempFolder } from "../../helpers/files/storage_folder.ts";
import { testConfig } from "../../helpers/app/test_app.ts";

test("keys written at the same time are all kept, with what the owner wrote", async () => {
  await using folder = await tempFolder();
  await Deno.writeTextFile(folder.file("config.toml"), "# mine\nport = 1 # one\n");
  const config = testConfig(folder.path);
  await Promise.all([
    saveConfigKey(config, "setup_completed", true),
    saveConfigKey(config, "tailnet_hostname", "study"),
    saveConfigKey(config, "tailnet_enabled", true),
  ]);
  expect(await Deno.readTextFile(folder.file("config.toml"))).toBe(
    '# mine\nport = 1 # one\nsetup_completed = true\ntailnet_hostname = "study"\ntailnet_enabled = true\n',
  );
});
