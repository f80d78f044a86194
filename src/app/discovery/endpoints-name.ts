/** The ConfigMap in `oarlock-system`. */
export const endpointsName = 'oarlock-endpoints'
