// A Matter node for matter.py: `matter_node.mjs device` or `matter_node.mjs controller`, with options as JSON.
// It writes a row for each message that matter.js encrypts: the bytes of its protocol header and payload, without the
// integrity code, as they were before.
import { createWriteStream } from "node:fs";

import { Bytes, Environment, Logger, Seconds, ServerNode } from "@matter/main";
import { AccessControlClient } from "@matter/main/behaviors/access-control";
import { ColorControlClient } from "@matter/main/behaviors/color-control";
import { DoorLockClient, DoorLockServer } from "@matter/main/behaviors/door-lock";
import { GroupKeyManagementClient } from "@matter/main/behaviors/group-key-management";
import { GroupsClient } from "@matter/main/behaviors/groups";
import { LevelControlClient } from "@matter/main/behaviors/level-control";
import { OnOffClient } from "@matter/main/behaviors/on-off";
import { OnOff } from "@matter/main/clusters/on-off";
import { DoorLockDevice } from "@matter/main/devices/door-lock";
import { ExtendedColorLightDevice } from "@matter/main/devices/extended-color-light";
import {
    FabricAuthority, GroupSession, Invoke, MessageCodec, NodeSession, UnsecuredSession,
} from "@matter/main/protocol";
import { GroupId, NodeId } from "@matter/main/types";

const [role, given] = process.argv.slice(2);
const options = JSON.parse(given);
const sent = createWriteStream(options.sent);
// What the controller does now, as a label for each message.
let doing = null;

function write(row) {
    sent.write(JSON.stringify(row, (_, value) => (typeof value === "bigint" ? Number(value) : value)) + "\n");
}

// Nanoseconds since the Unix epoch, as text: they do not fit a number. matter.py makes them integers.
const start = BigInt(Date.now()) * 1_000_000n - process.hrtime.bigint();
const now = () => String(start + process.hrtime.bigint());

// The rows: matter.js encodes each message, also one that it sends again, by its session's `encode`.
for (const [kind, session] of [["secure", NodeSession], ["unsecured", UnsecuredSession], ["group", GroupSession]]) {
    const encode = session.prototype.encode;
    session.prototype.encode = function (message) {
        const packet = encode.call(this, message);
        const { applicationPayload } = MessageCodec.encodePayload(message);
        const { protocolId, messageType, isInitiatorMessage, requiresAck } = message.payloadHeader;
        this.counters ??= new Set();
        write({
            time: now(), kind, session: packet.header.sessionId, counter: packet.header.messageId,
            plaintext: applicationPayload.byteLength, packet: MessageCodec.encodePacket(packet).byteLength,
            ack: protocolId === 0 && messageType === 0x10, again: this.counters.has(packet.header.messageId),
            protocol: protocolId, opcode: messageType, initiator: isInitiatorMessage, requires_ack: requiresAck,
            peer: this.isClosed ? null : this.channel?.networkAddress?.ip ?? null, doing,
        });
        this.counters.add(packet.header.messageId);
        return packet;
    };
}

Logger.level = options.log ?? "error";
const environment = Environment.default;
environment.vars.set("storage.path", options.storage);
environment.vars.set("mdns.networkInterface", "lab");
const network = { ipv4: false, port: 5540, ...(options.tcp ? { tcp: true, transportPreference: "tcp" } : {}) };

async function device() {
    const { passcode, discriminator } = options;
    const node = await ServerNode.create({
        id: options.name, network, commissioning: { passcode, discriminator },
        productDescription: { name: options.name },
    });
    if (options.name === "lamp") {
        await node.add(ExtendedColorLightDevice, {
            id: "lamp",
            levelControl: { minLevel: 1, maxLevel: 254, currentLevel: 100, options: { executeIfOff: true } },
            colorControl: {
                options: { executeIfOff: true },
                coupleColorTempToLevelMinMireds: 147, startUpColorTemperatureMireds: 147,
                colorTempPhysicalMinMireds: 147, colorTempPhysicalMaxMireds: 500,
            },
        });
    } else {
        await node.add(DoorLockDevice.with(DoorLockServer), {
            id: "lock",
            doorLock: {
                lockType: 0, lockState: 1, actuatorEnabled: true, operatingMode: 0, wrongCodeEntryLimit: 5,
                userCodeTemporaryDisableTime: 10,
            },
        });
    }
    await node.start();
    console.log("ready");
}

const any = most => Math.floor(Math.random() * most);
const plain = { optionsMask: { executeIfOff: true }, optionsOverride: { executeIfOff: true } };
// What each device can be told, by the names of its labels.
const ACTIONS = {
    lamp: {
        on: lamp => lamp.commandsOf(OnOffClient).on(),
        off: lamp => lamp.commandsOf(OnOffClient).off(),
        toggle: lamp => lamp.commandsOf(OnOffClient).toggle(),
        level: lamp => lamp.commandsOf(LevelControlClient)
            .moveToLevel({ level: 1 + any(253), transitionTime: 0, ...plain }),
        colour: lamp => lamp.commandsOf(ColorControlClient)
            .moveToColor({ colorX: any(65279), colorY: any(65279), transitionTime: 0, ...plain }),
        white: lamp => lamp.commandsOf(ColorControlClient)
            .moveToColorTemperature({ colorTemperatureMireds: 147 + any(350), transitionTime: 0, ...plain }),
    },
    lock: {
        lock: lock => lock.commandsOf(DoorLockClient).lockDoor({}),
        unlock: lock => lock.commandsOf(DoorLockClient).unlockDoor({}),
    },
};

async function controller() {
    const node = await ServerNode.create({
        id: options.name, network, commissioning: { enabled: false },
        controller: { adminFabricLabel: "lab" },
    });
    await node.start();
    const devices = {};
    for (const [name, { passcode, discriminator }] of Object.entries(options.devices)) {
        const peer = await node.peers.commission({ id: name, passcode, discriminator, timeout: Seconds(60) });
        devices[name] = { peer, endpoint: [...peer.endpoints].find(endpoint => endpoint.number === 1) };
        console.log(`commissioned ${name}`);
    }
    const group = options.group ? await grouped(node, devices.lamp) : null;
    await wait(2000);
    for (let count = 0; count < options.commands; count++) {
        await wait(options.least + Math.random() * (options.most - options.least));
        const names = Object.keys(devices);
        const name = names[any(names.length)];
        const actions = Object.keys(ACTIONS[name]);
        const action = actions[any(actions.length)];
        doing = `${name}-${action}`;
        const time = now();
        try {
            if (group && ["on", "off", "toggle"].includes(action) && any(2) === 0) {
                const command = Invoke({ suppressResponse: true, commands: [{ cluster: OnOff, command: action }] });
                for await (const _ of group.interaction.invoke(command));
            } else {
                await ACTIONS[name][action](devices[name].endpoint);
            }
            if (options.reads && any(4) === 0) {
                doing = `${name}-read`;
                await read(devices[name]);
            }
        } catch (error) {
            // Where packets are lost, a session can end; matter.js then makes another.
            if (!options.lost) throw error;
            console.error(`${doing}: ${error.message}`);
        }
        console.log(JSON.stringify({ time, action: `${name}-${action}` }));
        doing = null;
    }
    await wait(2000);
    console.log("done");
}

// Makes the lamp a member of a group, and returns the group.
async function grouped(node, { peer, endpoint }) {
    const [fabric] = node.env.get(FabricAuthority).fabrics;
    const [groupId, groupKeySetId] = [GroupId(1), 1];
    const none = { epochKey1: null, epochStartTime1: null, epochKey2: null, epochStartTime2: null };
    const key = {
        groupKeySetId, groupKeySecurityPolicy: 0, epochKey0: Bytes.fromHex("07".repeat(16)),
        epochStartTime0: BigInt(Date.UTC(2020, 0)) * 1000n, ...none,
    };
    await fabric.groups.setFromGroupKeySet(key);
    fabric.groups.groupKeyIdMap = new Map([[groupId, groupKeySetId]]);
    await peer.commandsOf(GroupKeyManagementClient).keySetWrite({ groupKeySet: key });
    const { fabricIndex } = peer.stateOf(AccessControlClient).acl[0];
    await peer.setStateOf(GroupKeyManagementClient, { groupKeyMap: [{ groupId, groupKeySetId, fabricIndex }] });
    await endpoint.commandsOf(GroupsClient).addGroup({ groupId, groupName: "lamps" });
    const members = { privilege: 3, authMode: 3, subjects: [NodeId(1)], targets: null, fabricIndex };
    await peer.setStateOf(AccessControlClient, { acl: [...peer.stateOf(AccessControlClient).acl, members] });
    return node.peers.forAddress({ fabricIndex: fabric.fabricIndex, nodeId: NodeId.fromGroupId(1) });
}

async function read({ peer }) {
    const all = [{}, { endpointId: 1 }, { endpointId: 1, clusterId: 6 }, { endpointId: 0, clusterId: 40 }];
    const request = { attributeRequests: [all[any(all.length)]], isFabricFiltered: true, includeKnownVersions: true };
    for await (const _ of peer.interaction.read(request));
}

const wait = time => new Promise(resolve => setTimeout(resolve, time));

await (role === "device" ? device() : controller());
if (role === "controller") {
    sent.end(() => process.exit(0));
} else {
    process.on("SIGTERM", () => sent.end(() => process.exit(0)));
}
