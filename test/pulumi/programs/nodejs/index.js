const pulumi = require('@pulumi/pulumi')

const config = new pulumi.Config()

const provider = {
  async create(inputs) {
    return { id: `id-${inputs.name}`, outs: inputs }
  },
  async update(_id, _olds, news) {
    return { outs: news }
  },
  async diff(_id, olds, news) {
    const replaces = olds.name === news.name ? [] : ['name']
    return { changes: olds.size !== news.size || replaces.length > 0, replaces, deleteBeforeReplace: false }
  },
}

class Thing extends pulumi.dynamic.Resource {
  constructor(name, inputs, options) {
    super(provider, name, inputs, options)
  }
}

class Group extends pulumi.ComponentResource {
  constructor(name, { size, prefix }) {
    super('web:index:Group', name)
    const inputs = index => ({ name: `${prefix}-${index}`, size, password: pulumi.secret(`password-${index}`) })
    this.things = [0, 1, 2, 3].map(index => new Thing(`${name}-${index}`, inputs(index), { parent: this }))
    this.registerOutputs({ count: this.things.length })
  }
}

const group = new Group('group', { size: config.getNumber('size') ?? 1, prefix: config.get('prefix') ?? 'thing' })
exports.ids = group.things.map(thing => thing.id)
