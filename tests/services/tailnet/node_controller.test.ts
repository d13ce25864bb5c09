import { expect, test } from "vitest";
import { serveConfig } from "../../../services/tailnet/node_controller.ts";

const SERVING = { fqdn: "parlor.tail.test", target: "http://127.0.0.2:4000/secret" };

test.each([
  [false, ["parlor.tail.test:80"]],
  [true, ["parlor.tail.test:443", "parlor.tail.test:80"]],
])(
  "every port gets an entry, with certificates %s, and none is open to the internet",
  async (isHttps, names) => {
    const config = JSON.parse(await serveConfig({ ...SERVING, isHttps }));
    const ports = Object.keys(config.TCP).map(Number);
    expect([ports.length, ports[0], ports.at(-1)]).toEqual([65_535, 1, 65_535]);
    expect([config.TCP[80], config.TCP[443], config.TCP[8787]]).toEqual([{ HTTP: true }, { HTTPS: true }, {
      HTTP: true,
    }]);
    expect(Object.keys(config.Web)).toEqual(names);
    expect(Object.keys(config)).toEqual(["TCP", "Web"]);
    expect(config.Web[names[0]!].Handlers).toEqual({ "/": { Proxy: SERVING.target } });
  },
);
