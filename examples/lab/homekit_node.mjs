// Both sides of homekit.py: `homekit_node.mjs accessory` or `homekit_node.mjs controller`, with options as JSON. Each
// writes a row for each frame that it encrypts: hap-nodejs and hap-controller put at most 1024 bytes into one.
import { createWriteStream } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const [role, given] = process.argv.slice(2);
const options = JSON.parse(given);
const sent = createWriteStream(options.sent);
const start = BigInt(Date.now()) * 1_000_000n - process.hrtime.bigint();
const now = () => String(start + process.hrtime.bigint());
const SETUP = "031-45-154";
let message = 0;
// What the controller does now.
let doing = null;

function log(data, port) {
    message += 1;
    for (let place = 0; place < data.length; place += 1024) {
        const plaintext = Math.min(data.length - place, 1024);
        const row = { time: now(), plaintext, message, bytes: data.length, client_port: port, doing };
        sent.write(`${JSON.stringify(row)}\n`);
    }
}

async function accessory() {
    const hap = require("hap-nodejs");
    const { HAPConnection } = require("hap-nodejs/dist/lib/util/eventedhttp.js");
    const encrypt = HAPConnection.prototype.encrypt;
    HAPConnection.prototype.encrypt = function (data) {
        const encrypted = encrypt.call(this, data);
        if (encrypted.length !== data.length) {
            log(data, this.remotePort);
        }
        return encrypted;
    };
    const { Accessory, Bridge, Categories, Characteristic, Service, uuid } = hap;
    hap.HAPStorage.setCustomStoragePath(options.storage);
    const bridge = new Bridge("Lab", uuid.generate("lab"));
    const add = (name, service) => {
        const made = new Accessory(name, uuid.generate(name));
        made.addService(service);
        bridge.addBridgedAccessory(made);
        return service;
    };
    const lamp = add("Lamp", new Service.Lightbulb("Lamp"));
    for (const kind of [Characteristic.Brightness, Characteristic.Hue, Characteristic.Saturation]) {
        lamp.getCharacteristic(kind);
    }
    const lock = add("Lock", new Service.LockMechanism("Lock"));
    lock.getCharacteristic(Characteristic.LockTargetState).onSet(state => {
        lock.updateCharacteristic(Characteristic.LockCurrentState, state);
    });
    await bridge.publish({ username: "02:00:00:00:00:02", pincode: SETUP, port: 51826, category: Categories.BRIDGE,
        bind: options.bind, advertiser: "bonjour-hap" });
    console.log("ready");
}

const any = most => Math.floor(Math.random() * most);

async function controller() {
    const { HttpClient } = require("hap-controller");
    const HttpConnection = require("hap-controller/lib/transport/ip/http-connection.js").default;
    const encrypt = HttpConnection.prototype._encryptData;
    HttpConnection.prototype._encryptData = function (data) {
        log(data, this.socket.localPort);
        return encrypt.call(this, data);
    };
    const client = new HttpClient("02:00:00:00:00:02", options.accessory, 51826, undefined,
        { usePersistentConnections: true, subscriptionsUseSameConnection: false });
    await client.pairSetup(SETUP);
    const { accessories } = await client.getAccessories();
    // The characteristics by their types: the last digits of the long ones.
    const found = {};
    for (const { aid, services } of accessories) {
        for (const { characteristics } of services) {
            for (const { iid, type } of characteristics) {
                found[type.replace(/-0000-1000-8000-0026BB765291$/, "").replace(/^0+/, "")] = `${aid}.${iid}`;
            }
        }
    }
    const types = ["25", "8", "13", "2F", "1D", "1E"];
    const [on, brightness, hue, saturation, current, target] = types.map(type => found[type]);
    await client.subscribeCharacteristics([on, brightness, current]);
    const actions = {
        "lamp-on": { [on]: true },
        "lamp-off": { [on]: false },
        "lamp-level": () => ({ [brightness]: 1 + any(100) }),
        "lamp-colour": () => ({ [hue]: any(360), [saturation]: any(100) }),
        "lock-lock": { [target]: 1 },
        "lock-unlock": { [target]: 0 },
    };
    const names = Object.keys(actions);
    await wait(1000);
    for (let count = 0; count < options.commands; count++) {
        await wait(options.least + Math.random() * (options.most - options.least));
        doing = names[any(names.length)];
        const time = now();
        const action = actions[doing];
        await client.setCharacteristics(typeof action === "function" ? action() : action);
        console.log(JSON.stringify({ time, action: doing }));
        if (options.reads && any(3) === 0) {
            doing = "read";
            const chosen = Object.values(found).filter(() => any(3) === 0);
            await (any(3) === 0 || chosen.length === 0
                ? client.getAccessories()
                : client.getCharacteristics(chosen, { meta: any(2) === 0, perms: any(2) === 0 }));
        }
        doing = null;
    }
    await wait(1000);
}

const wait = time => new Promise(resolve => setTimeout(resolve, time));

if (role === "controller") {
    await controller();
    sent.end(() => process.exit(0));
} else {
    await accessory();
    process.on("SIGTERM", () => sent.end(() => process.exit(0)));
}
